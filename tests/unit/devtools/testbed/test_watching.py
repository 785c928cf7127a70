"""A watch goes on where it was when the server closes it, and begins again where that version has expired."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from devtools.testbed import watching
from devtools.testbed.client import Client, Refused
from devtools.testbed.watching import Watching


def event(kind: str, version: str = "1", **more: Any) -> bytes:
    return (
        json.dumps({"type": kind, "object": {"metadata": {"resourceVersion": version}, **more}})
        .replace('{"type": "', '{"type":"')
        .encode()
    )


class Server(Client):
    """A client of watches with these lines, one list for each request; an exception is raised instead of a line."""

    def __init__(self, *watches: list[Any]) -> None:
        self.watches = [*watches]
        self.paths: list[str] = []
        self.over = threading.Event()

    def connect(self, timeout: float | None) -> Any:
        class Connection:
            sock = None

            def close(self) -> None: ...

        return Connection()

    def lines(self, connection: Any, path: str, accept: str = "") -> Iterator[bytes]:
        self.paths.append(path.partition("watch=true&allowWatchBookmarks=true")[2])
        if not self.watches:
            self.over.set()
            raise ConnectionResetError
        for line in self.watches.pop(0):
            if isinstance(line, Exception):
                raise line
            yield line


def watched(server: Server, monkeypatch: pytest.MonkeyPatch, **options: str) -> tuple[list[tuple[str, str]], Watching]:
    """The type and the version of each event taken."""
    monkeypatch.setattr(watching, "_PAUSE", 0.0)
    taken: list[tuple[str, str]] = []

    def take(kind: str, found: dict[str, Any], now: float) -> None:
        if found.get("breaks"):
            raise KeyError("a defect")
        taken.append((kind, found["metadata"]["resourceVersion"]))

    with Watching(server, "/pods", take, **options) as made:
        assert server.over.wait(10) or made.failure
    return taken, made


def test_it_goes_on_from_the_last_version(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server([event("ADDED", "1"), event("BOOKMARK", "7")], [ConnectionResetError()], [event("DELETED", "9")])
    taken, made = watched(server, monkeypatch)
    assert taken == [("ADDED", "1"), ("DELETED", "9")]
    assert server.paths[:4] == ["", "&resourceVersion=7", "&resourceVersion=7", "&resourceVersion=9"]
    assert (made.failure, made.expired) == (None, 0)


@pytest.mark.parametrize("expiry", [event("ERROR"), Refused(410, "gone")])
def test_it_begins_again_where_its_version_has_expired(expiry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server([event("ADDED", "1"), expiry], [event("ADDED", "8")])
    taken, made = watched(server, monkeypatch)
    assert taken == [("ADDED", "1"), ("ADDED", "8")]
    assert server.paths[:2] == ["", ""]
    assert made.expired == 1


def test_events_of_other_types_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server([event("ADDED", "1"), event("MODIFIED", "2")])
    taken, _ = watched(server, monkeypatch, only="ADDED")
    assert taken == [("ADDED", "1")]
    assert server.paths[1] == "&resourceVersion=2"


def test_an_event_nested_too_deeply_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = b'{"type":"ADDED","object":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    taken, made = watched(Server([event("ADDED", "1"), deep, event("ADDED", "3")]), monkeypatch)
    assert taken == [("ADDED", "1"), ("ADDED", "3")]
    assert made.failure is None


def test_an_error_of_the_tool_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    _, made = watched(Server([event("ADDED", "1", breaks=True)]), monkeypatch)
    assert repr(made.failure) == "KeyError('a defect')"
