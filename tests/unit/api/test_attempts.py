"""When a request is sent again, and what its steps raise in the end. No request is sent here."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import attempts
from ansible_collections.dljob.operator.plugins.module_utils.api.attempts import NoResponse, Response, answered
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import drive
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import ApiRequest, TooLate
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError


class Clock:
    now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(attempts, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def outcome(
    method: str, answers: Iterator[Any], clock: Clock, takes: float = 0.01
) -> tuple[ApiError | None, int, list]:
    """The error of the steps, the number of requests and the pauses; each request ``takes`` so many seconds."""
    sent = 0
    pauses: list[float] = []

    def send(request: ApiRequest) -> Response:
        nonlocal sent
        sent += 1
        clock.now += takes
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Response)
        return answer

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock.sleep(seconds)

    try:
        drive(answered(ApiRequest(method, "/p")), send, sleep)
    except ApiError as error:
        return error, sent, pauses
    return None, sent, pauses


def repeated(answer: Any) -> Iterator[Any]:
    while True:
        yield answer


UNSENT, LOST = NoResponse("refused", was_sent=False), NoResponse("closed")
LATE = NoResponse("timed out", timed_out=True)


@pytest.mark.parametrize(
    ("method", "error", "is_repeated"),
    [
        *((method, UNSENT, True) for method in ("GET", "PUT", "DELETE", "POST", "PATCH")),
        *((method, LOST, True) for method in ("GET", "PUT", "DELETE")),
        *((method, LOST, False) for method in ("POST", "PATCH")),
        *((method, LATE, False) for method in ("GET", "DELETE", "POST")),
    ],
)
def test_a_request_that_was_not_sent_or_that_may_be_sent_twice_is_repeated(
    method: str, error: NoResponse, is_repeated: bool, clock: Clock
) -> None:
    """One of several API servers behind an address may have died."""
    found, sent, _ = outcome(method, iter([error, error, error, Response(200, b"{}")]), clock)
    assert (found is None, sent) == (is_repeated, 4 if is_repeated else 1)
    if found is not None:
        assert (found.status, found.reason, found.message) == (0, "NoAnswer", f"{method} /p: {error}")


def test_it_is_tried_four_times(clock: Clock) -> None:
    found, sent, _ = outcome("GET", repeated(LOST), clock)
    assert sent == 4
    assert found is not None
    assert found.reason == "NoAnswer"


def test_a_request_whose_connection_is_lost_late_is_not_repeated(clock: Clock) -> None:
    """Four requests of 29 s would be two minutes."""
    _, sent, _ = outcome("DELETE", repeated(LOST), clock, takes=2.0)
    assert sent == 2


@pytest.mark.parametrize(
    ("method", "status", "after", "pauses"),
    [
        ("GET", 429, "1", [1, 1]),
        ("PUT", 429, "0", [0, 0, 0]),
        ("DELETE", 503, "1", [1, 1]),
        ("DELETE", 503, "2", [2]),
        ("GET", 429, "3", []),
        ("POST", 429, "1", []),
        ("PATCH", 503, "1", []),
        ("GET", 429, "", []),
        ("GET", 429, "Sat, 28 Nov 2026 02:00:00 GMT", []),
        ("GET", 500, "1", []),
    ],
)
def test_a_request_is_repeated_after_the_time_for_which_the_api_server_asks(
    method: str, status: int, after: str, pauses: list[float], clock: Clock
) -> None:
    found, sent, paused = outcome(method, repeated(Response(status, b"{}", after)), clock)
    assert found is not None
    assert (found.status, sent, paused) == (status, 1 + len(pauses), pauses)


def test_a_write_that_is_too_late_is_not_repeated(clock: Clock) -> None:
    found, sent, _ = outcome("DELETE", repeated(TooLate(ApiRequest("DELETE", "/p"))), clock)
    assert found is not None
    assert (found.status, found.reason, sent) == (0, "NotLeading", 1)
    assert found.message == "DELETE /p was not sent: this operator is no longer the leader"
