"""The harness's client: a collection that the API server cannot delete within one request."""

from __future__ import annotations

import http.client
import threading
from typing import Any

import pytest
from devtools.lab.bench.client import Client, Refused


class Slow(Client):
    """Needs several requests to delete a collection."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = [*statuses, 200]

    def raw(self, method: str, path: str, body: Any = None, content_type: str = "") -> tuple[int, bytes]:
        assert (method, path, body) == ("DELETE", "/jobs", {"a": 1})
        if (status := self.statuses.pop(0)) == CUT:
            raise http.client.IncompleteRead(b"{")
        return status, b"{}"


CUT = 0
"""Stands for a response that ends in the middle."""


def test_a_collection_is_deleted_in_several_requests() -> None:
    client = Slow(504, CUT, 504)
    client.delete_all("/jobs", {"a": 1}, 60)
    assert not client.statuses


def test_a_response_that_ends_in_the_middle_is_an_error_at_the_end_of_the_time() -> None:
    client = Slow(CUT, CUT)
    with pytest.raises(http.client.IncompleteRead):
        client.delete_all("/jobs", {"a": 1}, 0)
    assert client.statuses == [CUT, 200]


@pytest.mark.parametrize(("timeout", "statuses", "left"), [(60, [403], 1), (0, [504, 504], 2)])
def test_a_refusal_and_the_end_of_the_time_are_errors(timeout: float, statuses: list[int], left: int) -> None:
    client = Slow(*statuses)
    with pytest.raises(Refused, match=str(statuses[0])):
        client.delete_all("/jobs", {"a": 1}, timeout)
    assert len(client.statuses) == left


class Interrupted:
    """A connection on whose response somebody presses Ctrl-C."""

    def __init__(self) -> None:
        self.closed = False

    def request(self, *_: Any) -> None: ...

    def getresponse(self) -> None:
        raise KeyboardInterrupt

    def close(self) -> None:
        self.closed = True


def client_with(*connections: Interrupted) -> Client:
    client = Client.__new__(Client)
    client._local = threading.local()  # noqa: SLF001 - without a kubeconfig
    opened = iter(connections)
    client.connection = lambda timeout=0.0: next(opened)  # type: ignore[method-assign,assignment,return-value]
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
