"""What a session leaves when it ends: of an interrupted one, Kubernetes deletes the objects, and nothing waits for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from devtools.lab.bench import plan, session
from devtools.lab.bench.peers import Peer
from devtools.lab.bench.session import BenchContext, Session
from devtools.lab.bench.workloads import QUICK
from devtools.testbed.client import Client, Refused
from devtools.testbed.ground import Ground


class Recorded(Client):
    """Records deletions, and refuses the first of them with `refusal`."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.deleted: list[str] = []
        self._refusal = refusal

    def request(self, method: str, *_: Any, **__: Any) -> dict[str, Any]:
        if method == "DELETE":
            self.deleted.append("namespace")
            if self._refusal is not None:
                raise self._refusal
        return {}


@contextmanager
def no_observer(*_: object) -> Iterator[None]:
    yield


def session_with(client: Recorded, monkeypatch: pytest.MonkeyPatch, *, throwaway: bool = False) -> Session:
    monkeypatch.setattr(session, "Observer", no_observer)
    monkeypatch.setattr(session, "clear", lambda *_: client.deleted.append("its objects"))
    ground = Ground(client, Path(), Path(), 1, ())
    context = BenchContext(ground, QUICK, lambda text: None, throwaway=throwaway)
    return Session(context, plan.Planned(cast(Peer, None), 1, ()))


def in_namespace(prepared: Session) -> AbstractContextManager[Any]:
    """What a session does before and after its workloads."""
    return prepared._in_namespace()  # noqa: SLF001 - without its workloads


@pytest.mark.parametrize("error", [None, ValueError("a workload failed")])
def test_it_deletes_its_objects_and_its_namespace(error: Exception | None, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Recorded()
    try:
        with in_namespace(session_with(client, monkeypatch)):
            if error:
                raise error
    except ValueError as found:
        assert found is error
    assert client.deleted == ["its objects", "namespace"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), SystemExit(143), GeneratorExit()])
@pytest.mark.parametrize("refusal", [None, Refused(503, "down"), TimeoutError("slow")])
def test_an_interruption_only_requests_the_deletion(
    interruption: BaseException, refusal: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Recorded(refusal)
    with pytest.raises(type(interruption)), in_namespace(session_with(client, monkeypatch)):
        raise interruption
    assert client.deleted == ["namespace"]


def test_a_cluster_that_goes_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Recorded()
    with in_namespace(session_with(client, monkeypatch, throwaway=True)):
        pass
    assert client.deleted == []


def test_an_interruption_while_it_deletes_its_objects_requests_the_deletion_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Recorded()
    interrupted = session_with(client, monkeypatch)
    monkeypatch.setattr(session, "clear", interrupt)
    with pytest.raises(SystemExit), in_namespace(interrupted):
        pass
    assert client.deleted == ["namespace"]


def test_a_leader_has_stopped_once_another_may_hold_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    holders = [["one"], ["one"], ["one"], [""]]
    done: list[object] = []

    class Leases(Client):
        def __init__(self) -> None:
            pass

        def request(self, method: str, *_: Any, **__: Any) -> dict[str, Any]:
            done.append(method)
            return {"items": [{"spec": {"holderIdentity": name}} for name in holders.pop(0)]}

    monkeypatch.setattr(session.os, "kill", lambda *signal: done.append(signal))
    context = BenchContext(Ground(Leases(), Path(), Path(), 1, ()), QUICK, lambda text: None)
    peer = Peer("p", "p", list)
    started = Session(context, plan.Planned(peer, 1, ()))
    started._release(cast(Any, SimpleNamespace(pid=7)))  # noqa: SLF001 - without its workloads
    assert done == ["GET", (7, signal.SIGTERM), "GET", "GET", "GET"]


def interrupt(*_: object) -> None:
    raise SystemExit(143)
