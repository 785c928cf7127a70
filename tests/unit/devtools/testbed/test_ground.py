"""A load run begins when the API server answers for each kind, and leaves nothing of its jobs."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from devtools.testbed import ground
from devtools.testbed.client import Client
from devtools.testbed.jobs import kind_of


class StartingServer:
    """Answers the first `busy` lists of each collection as an API server whose watch cache is not yet filled."""

    def __init__(self, busy: int) -> None:
        self.busy = busy
        self.asked: dict[str, int] = {}

    def request(self, method: str, path: str, body: Any = None, content_type: str = "") -> dict[str, Any]:
        assert method == "PATCH"
        assert content_type == "application/apply-patch+yaml"
        plural, group = path.rpartition("/")[2].partition("?")[0].split(".", 1)
        versions = [{"name": "v1", "served": True}, {"name": "v1alpha1", "served": False}]
        return {"spec": {"group": group, "names": {"plural": plural}, "versions": versions}}

    def raw(self, method: str, path: str) -> tuple[int, bytes]:
        self.asked[path] = self.asked.get(path, 0) + 1
        return (429, b"storage is (re)initializing") if self.asked[path] <= self.busy else (200, b"{}")


def test_each_served_version_is_asked_for_until_it_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground.time, "sleep", lambda seconds: None)
    server = StartingServer(busy=2)
    ground.install_crds(server)  # type: ignore[arg-type]
    assert server.asked["/apis/kubeflow.org/v1/pytorchjobs?limit=1"] == 3
    assert set(server.asked.values()) == {3}
    assert not [path for path in server.asked if "v1alpha1" in path]


def test_a_definition_that_is_never_served_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground, "_SERVED", 0.0)
    with pytest.raises(TimeoutError, match=r"limit=1: 429: storage is \(re\)initializing"):
        ground.install_crds(StartingServer(busy=1_000_000))  # type: ignore[arg-type]


class Server(Client):
    """Holds objects by the path of their collection, and deletes at most two of one with a request.

    Such a request ends in the middle of its response.
    """

    def __init__(self, **objects: list[str]) -> None:
        self.objects = {self.path(plural): names for plural, names in objects.items()}
        self.requests: list[str] = []

    @staticmethod
    def path(plural: str) -> str:
        found = [path.format("n") for path in ground.OWNED if path.endswith(plural)]
        return found[0] if found else f"/apis/kubeflow.org/v1/namespaces/n/{plural}"

    def connect(self, timeout: float | None) -> Any:
        return SimpleNamespace(close=lambda: None)

    def lines(self, connection: Any, path: str, accept: str = "") -> Iterator[bytes]:
        names = self.objects.get(path.partition("?")[0], [])
        yield json.dumps({"items": [{"metadata": {"name": name}} for name in names]}).encode()

    def raw(self, method: str, path: str, body: Any = None, content_type: str = "") -> tuple[int, bytes]:
        self.requests.append(f"{method} {path.rpartition('/')[2]}")
        if method == "PATCH":
            assert body == {"metadata": {"finalizers": None}}
            return 200, b"{}"
        names = self.objects.get(path, [])
        is_cut = len(names) > 2
        del names[:2]
        if is_cut:
            raise http.client.IncompleteRead(b"{")
        return 200, b"{}"


def ground_of(server: Server) -> ground.Ground:
    return ground.Ground(server, Path(), Path(), 1, (kind_of("kubeflow.org/v1", "MXJob"),))


def test_what_one_request_cannot_delete_takes_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground, "_PAUSE", 0.0)
    server = Server(mxjobs=[*"abcdefgh"], pods=[*"abc"], services=["a"], endpointslices=["a"])
    ground.clear(ground_of(server), "n", 60)
    assert not any(server.objects.values())
    assert server.requests.count("DELETE mxjobs") == 4
    assert server.requests.count("DELETE pods") == 2
    assert "PATCH h" in server.requests, "its finalizers could hold it"


def test_what_is_left_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground, "_PAUSE", 0.0)
    server = Server(mxjobs=["a"], configmaps=["kept", "kube-root-ca.crt"])
    with pytest.raises(TimeoutError, match="1 objects are left after 0 s: configmaps/kept"):
        ground.clear(ground_of(server), "n", 0.05)
