"""The benchmark's first request for a kind comes after the API server answers for it."""

from __future__ import annotations

from typing import Any

import pytest
from devtools.lab.bench import cli


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
    monkeypatch.setattr(cli.time, "sleep", lambda seconds: None)
    server = StartingServer(busy=2)
    cli.install_crds(server)  # type: ignore[arg-type]
    assert server.asked["/apis/kubeflow.org/v1/pytorchjobs?limit=1"] == 3
    assert set(server.asked.values()) == {3}
    assert not [path for path in server.asked if "v1alpha1" in path]


def test_a_definition_that_is_never_served_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "_SERVED", 0.0)
    with pytest.raises(TimeoutError, match=r"limit=1: 429: storage is \(re\)initializing"):
        cli.install_crds(StartingServer(busy=1_000_000))  # type: ignore[arg-type]
