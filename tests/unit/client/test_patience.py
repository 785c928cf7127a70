"""How long a watch rests after failures."""

from __future__ import annotations

import time

import pytest
from dljob import patience as patience_
from dljob.errors import ApiError, ConnectionFailed
from dljob.patience import CONNECTION, Patience


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each rest, none of which is waited for."""
    found: list[float] = []
    monkeypatch.setattr(Patience, "pause", lambda self, seconds: found.append(seconds))
    return found


def test_each_rest_is_longer_until_it_gives_up(rests: list[float]) -> None:
    patience, error = Patience(lambda: False, None), ApiError(429, "", "busy")
    for _ in range(5):
        patience.rest("a", error)
    assert rests == [0.5, 1.0, 2.0, 4.0, 8.0]
    with pytest.raises(ApiError, match="busy"):
        patience.rest("a", error)


def test_a_success_ends_the_failures_of_its_kind_and_of_the_connection(rests: list[float]) -> None:
    patience = Patience(lambda: False, None)
    for what in ("a", "b", CONNECTION):
        patience.rest(what, ConnectionFailed("x"))
    patience.forget("a")
    for what in ("a", "b", CONNECTION):
        patience.rest(what, ConnectionFailed("x"))
    assert rests == [0.5, 0.5, 0.5, 0.5, 1.0, 0.5]


def test_a_place_that_was_forgotten_needs_no_rest_once(rests: list[float]) -> None:
    patience = Patience(lambda: False, None)
    for _ in range(3):
        patience.rest("a", ApiError(410, "Expired", "too old"))
    assert rests == [1.0, 2.0]


@pytest.mark.parametrize("ends", ["stop", "timeout"])
def test_a_rest_ends_with_the_watch(monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    monkeypatch.setattr(patience_, "_FIRST", 60.0)
    monkeypatch.setattr(patience_, "_LONGEST", 60.0)
    begin = time.monotonic()
    stop = lambda: ends == "stop" and time.monotonic() > begin + 0.1  # noqa: E731
    patience = Patience(stop, 0.1 if ends == "timeout" else None)
    patience.rest("a", ConnectionFailed("x"))
    assert patience.is_over and time.monotonic() < begin + 30
