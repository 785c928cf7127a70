"""What the probes say of one watch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.clock import Clock

from dljob_operator.engine.cache.watch_health import (
    LIST_AGAIN_AFTER,
    REJECTED_AFTER,
    STALE_AFTER,
    WatchHealth,
)


class Watched:
    """A watch that was listed and opened."""

    def __init__(self) -> None:
        self.clock = Clock(1000.0)
        self.health = WatchHealth("pods", self.clock)
        self.health.received()
        self.health.opened()

    def after(self, seconds: float, event: Callable[[], None] = lambda: None, times: int = 1) -> Watched:
        for _ in range(times):
            self.clock.now += seconds
            event()
        return self

    @property
    def says(self) -> tuple[str, str]:
        return self.health.problem(), self.health.not_ready(True)


def test_a_watch_with_bookmarks_is_healthy_for_ever() -> None:
    watched = Watched()
    assert watched.after(60, watched.health.received, times=200).says == ("", "")
    assert watched.health.silent_for == 0


def test_a_watch_that_is_open_and_silent_is_stale_and_named() -> None:
    watched = Watched()
    watched.after(STALE_AFTER)
    assert watched.says == ("", "")
    stale = "the watch of pods is open but has received nothing for 601 s"
    assert watched.after(1).says == (stale, stale)
    watched.health.received()
    assert watched.says == ("", "")


def test_opening_a_watch_anew_is_no_sign_of_life() -> None:
    """Something between us and the API server may accept watches and deliver nothing."""
    watched = Watched()
    watched.after(90, watched.health.opened, times=4)
    assert watched.health.silent_for > LIST_AGAIN_AFTER
    assert watched.health.problem() == ""
    assert "nothing for 630 s" in watched.after(90, watched.health.opened, times=3).health.problem()


def test_an_api_server_that_does_not_answer_fails_readiness_only() -> None:
    watched = Watched()
    refused = lambda: watched.health.failed("connection refused")  # noqa: E731
    refused()
    assert watched.after(30, refused, times=2).says == ("", "")
    assert watched.after(1, refused).says == ("", "pods could not be watched for 61 s: connection refused")
    assert watched.health.silent_for == 0
    assert watched.after(30, refused, times=3000).health.problem() == ""
    watched.health.opened()
    assert watched.says == ("", "")
    assert watched.health.silent_for == 0  # there was nothing to receive meanwhile


def test_credentials_that_are_rejected_for_long_are_worth_a_restart() -> None:
    watched = Watched()
    rejected = lambda: watched.health.failed("Unauthorized", rejected=True)  # noqa: E731
    rejected()
    assert watched.after(30, rejected, times=int(REJECTED_AFTER / 30)).health.problem() == ""
    assert watched.after(1, rejected).health.problem() == "the watch of pods has been rejected for 601 s: Unauthorized"
    watched.health.failed("connection refused")
    assert watched.health.problem() == ""


@pytest.mark.parametrize("before", ["opened", "failed"])
def test_a_thread_that_makes_no_attempt_is_stuck(before: str) -> None:
    watched = Watched()
    if before == "failed":
        watched.health.failed("connection refused")
    assert watched.after(STALE_AFTER).health.problem() == ""
    assert "the watch of pods" in watched.after(1).health.problem()


def test_a_thread_that_has_not_even_listed_is_stuck() -> None:
    clock = Clock(1000.0)
    health = WatchHealth("pods", clock)
    clock.now += STALE_AFTER
    assert (health.problem(), health.silent_for) == ("", 0)
    clock.now += 1
    assert health.problem() == "the watch of pods has made no attempt for 601 s"


def test_before_the_first_list_it_is_not_ready_and_the_error_is_named() -> None:
    health = WatchHealth("pods", Clock(1000.0))
    assert health.not_ready(False) == "the first list of pods is not complete"
    health.failed("Unauthorized")
    assert health.not_ready(False) == "the first list of pods is not complete: Unauthorized"
    assert health.problem() == ""


def test_a_kind_that_is_not_served_has_no_problem() -> None:
    watched = Watched()
    watched.health.failed("forbidden")
    watched.after(30, watched.health.absent, times=100)
    assert watched.says == ("", "")
