"""What a session leaves when it ends: of an interrupted one, Kubernetes deletes the objects, and nothing waits for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from devtools.lab.bench import plan, session
from devtools.lab.bench.client import Client, Refused
from devtools.lab.bench.peers.base import Peer
from devtools.lab.bench.session import BenchContext, Session
from devtools.lab.bench.workloads import QUICK


class Recorded(Client):
    """Records deletions, and refuses the first of them with `refusal`. `left` pods never go."""

    def __init__(self, refusal: Exception | None = None, *, left: bool = False) -> None:
        self.deleted: list[str] = []
        self.timeouts: list[float] = []
        self._refusal = refusal
        self._left = left

    def request(self, method: str, path: str, body: Any = None, content_type: str = "") -> dict[str, Any]:
        if method == "DELETE":
            self.deleted.append(path.removeprefix("/api/v1/namespaces/").partition("/")[2] or "namespace")
            if self._refusal is not None:
                raise self._refusal
        return {"items": [{}] if self._left else []}

    def delete_all(self, collection: str, body: dict[str, Any], timeout: float) -> None:
        self.timeouts.append(timeout)
        self.deleted.append(collection.rpartition("/")[2])


@contextmanager
def no_observer(*_: object) -> Iterator[None]:
    yield


def session_with(client: Client, monkeypatch: pytest.MonkeyPatch, *, throwaway: bool = False) -> Session:
    monkeypatch.setattr(session, "Observer", no_observer)
    context = BenchContext(client, Path(), Path(), QUICK, 1, lambda text: None, throwaway=throwaway)
    return Session(context, plan.Session(cast(Peer, None), 1, ()))


def in_namespace(
    client: Client, monkeypatch: pytest.MonkeyPatch, *, throwaway: bool = False
) -> AbstractContextManager[Any]:
    """What a session does before and after its workloads."""
    return session_with(client, monkeypatch, throwaway=throwaway)._in_namespace()  # noqa: SLF001 - without its workloads


ALL = ["mxjobs", "pods", "services", "endpointslices", "namespace"]


@pytest.mark.parametrize("error", [None, ValueError("a workload failed")])
def test_it_deletes_its_objects_and_its_namespace(error: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Recorded()
    try:
        with in_namespace(client, monkeypatch):
            if error:
                raise error
    except ValueError as found:
        assert found is error
    assert client.deleted == ALL
    assert client.timeouts == sorted(client.timeouts, reverse=True), "the time of all, not of each"
    assert client.timeouts[0] > client.timeouts[-1]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), SystemExit(143), GeneratorExit()])
@pytest.mark.parametrize("refusal", [None, Refused(503, "down"), TimeoutError("slow")])
def test_an_interruption_only_requests_the_deletion(
    interruption: BaseException, refusal: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Recorded(refusal)
    with pytest.raises(type(interruption)), in_namespace(client, monkeypatch):
        raise interruption
    assert client.deleted == ["namespace"]


def test_objects_that_stay_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="still exist"):
        session_with(Recorded(left=True), monkeypatch)._clear(timeout=0.2)  # noqa: SLF001 - without its workloads
    assert time.monotonic() - began < 10


def test_a_cluster_that_goes_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Recorded()
    with in_namespace(client, monkeypatch, throwaway=True):
        pass
    assert client.deleted == []


def test_an_interruption_while_it_deletes_its_objects_requests_the_deletion_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Recorded()
    monkeypatch.setattr(client, "delete_all", interrupt)
    with pytest.raises(SystemExit), in_namespace(client, monkeypatch):
        pass
    assert client.deleted == ["namespace"]


def interrupt(*_: object) -> None:
    raise SystemExit(143)
