"""The client: connections that close, an API server that is down, and watches."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from devtools.testbed import client as client_module
from devtools.testbed.client import Client, Expired, Refused


class Interrupted:
    """A connection on whose response somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self.closed = False

    def request(self, *_: Any) -> None: ...

    def getresponse(self) -> None:
        raise KeyboardInterrupt

    def close(self) -> None:
        self.closed = True


def client_with(*connections: Interrupted, patience: float = 0.0) -> Client:
    client = Client.__new__(Client)
    client._patience, client._timeout, client._local = patience, 1.0, threading.local()  # noqa: SLF001 - without a kubeconfig
    opened = iter(connections)
    client.connect = lambda timeout: next(opened)  # type: ignore[method-assign,assignment,return-value]
    return client


def test_after_an_interruption_the_next_request_has_a_new_connection() -> None:
    """Of the old one the response is still to be read, and it takes no other request."""
    connections = [Interrupted(), Interrupted()]
    client = client_with(*connections)
    for connection in connections:
        with pytest.raises(KeyboardInterrupt):
            client.raw("DELETE", "/jobs")
        assert connection.closed


class Answer:
    status = 200

    def read(self) -> bytes:
        return b"{}"


class Idle(Interrupted):
    """A connection that the server closes after so many responses, as it does with an idle one."""

    def __init__(self, responses: int) -> None:
        super().__init__()
        self.left = responses

    def getresponse(self) -> Any:
        if not self.left:
            raise http.client.RemoteDisconnected("Remote end closed connection without response")
        self.left -= 1
        return Answer()


def test_a_request_on_a_connection_that_has_become_idle_is_sent_again() -> None:
    """kwok compiles for minutes between two requests of the first run of the benchmark."""
    first, second = Idle(1), Idle(1)
    client = client_with(first, second)
    assert client.raw("GET", "/version") == (200, b"{}")
    assert client.raw("POST", "/jobs", {}) == (200, b"{}")
    assert first.closed
    assert not second.closed


def test_a_new_connection_that_is_closed_is_an_error() -> None:
    client = client_with(Idle(0), Idle(1))
    with pytest.raises(http.client.RemoteDisconnected):
        client.raw("GET", "/version")


NONE = 0


class Restarting(Client):
    """A client of an API server that gives these answers, 0 for none."""

    def __init__(self, *statuses: int, patience: float = 60.0) -> None:
        self._patience = patience
        self.statuses = [*statuses]

    def raw(self, method: str, path: str, body: Any = None, content_type: str = "") -> tuple[int, bytes]:
        if (status := self.statuses.pop(0)) == NONE:
            raise ConnectionRefusedError("down")
        return status, b'{"a": 1}'


def test_a_patient_client_waits_for_an_api_server_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAUSE", 0.0)
    client = Restarting(NONE, 503, 403, 200)
    assert client.request("GET", "/jobs") == {"a": 1}
    assert not client.statuses


@pytest.mark.parametrize("status", [404, 409])
def test_to_a_patient_client_a_repeated_request_is_no_error(status: int) -> None:
    assert Restarting(status).request("POST", "/jobs", {}) == {}
    with pytest.raises(Refused, match=str(status)):
        Restarting(status, patience=0.0).request("POST", "/jobs", {})
    assert Restarting(status, patience=0.0).request("POST", "/jobs", {}, absent=(status,)) == {}


def test_the_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAUSE", 0.0)
    with pytest.raises(TimeoutError, match="did not answer GET /jobs: down"):
        Restarting(*[NONE] * 1_000_000, patience=0.01).request("GET", "/jobs")


class Watched(Client):
    """A client of a watch with these lines, or this status."""

    def __init__(self, *events: dict[str, Any], status: int = 200) -> None:
        self._events, self._status = events, status

    def connect(self, timeout: float | None) -> Any:
        return Interrupted()

    def lines(self, connection: Any, path: str, accept: str = "") -> Iterator[bytes]:
        self.path = path
        if self._status != 200:
            raise Refused(self._status, "no")
        yield from (json.dumps(event).encode() for event in self._events)


def test_a_watch_yields_its_events_from_a_version_on() -> None:
    client = Watched({"type": "ADDED", "object": {}}, {"type": "BOOKMARK", "object": {}})
    assert [event["type"] for event in client.watch("/pods?labelSelector=a", "7", 5)] == ["ADDED", "BOOKMARK"]
    assert "/pods?labelSelector=a&watch=true" in client.path and "&resourceVersion=7&timeoutSeconds=5" in client.path


@pytest.mark.parametrize(
    ("client", "error"),
    [
        (Watched(status=410), Expired),
        (Watched({"type": "ERROR", "object": {"code": 410}}), Expired),
        (Watched({"type": "ERROR", "object": {"code": 500}}), ConnectionError),
        (Watched(status=403), ConnectionError),
    ],
)
def test_a_watch_that_cannot_go_on(client: Watched, error: type[Exception]) -> None:
    with pytest.raises(error):
        list(client.watch("/pods", "7"))
