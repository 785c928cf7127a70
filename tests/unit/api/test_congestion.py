"""The congestion window: it opens while the API server is as quick as ever, and closes where writes wait for others."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import congestion
from ansible_collections.dljob.operator.plugins.module_utils.api.congestion import CongestionWindow

MOST = 8


@pytest.fixture
def window() -> CongestionWindow:
    return CongestionWindow(MOST)


def feed(window: CongestionWindow, seconds: float, times: int) -> int:
    for _ in range(times):
        window.measured(seconds)
    return window.width


def test_it_begins_with_one(window: CongestionWindow) -> None:
    assert window.width == 1


def test_a_distant_api_server_opens_it_to_all_connections(window: CongestionWindow) -> None:
    """Where the way takes most of the time, more writes at once make none of them slower."""
    assert feed(window, 0.02, 10) < MOST
    assert feed(window, 0.02, 100) == MOST


def test_a_busy_one_closes_it_to_one_within_a_few_writes(window: CongestionWindow) -> None:
    feed(window, 0.003, 100)
    assert feed(window, 0.02, 6) == 1


def test_twice_the_shortest_time_is_not_slow(window: CongestionWindow) -> None:
    window.measured(1.0)
    window.measured(2.001)  # the shortest counts a thousandth more with each write
    assert window.width == 2
    window.measured(2.01)
    assert window.width == 1


def test_it_stays_where_the_api_server_is_as_quick_as_ever(window: CongestionWindow) -> None:
    """Beyond two writes at once each waits for the others."""
    widths = []
    for _ in range(300):
        window.measured(0.002 * max(1, window.width - 1))
        widths.append(window.width)
    assert max(widths[100:]) <= 4
    assert min(widths[100:]) >= 2


def test_an_api_server_that_became_slower_for_good_opens_it_again(window: CongestionWindow) -> None:
    feed(window, 0.003, 100)
    assert feed(window, 0.012, 500) == 1
    assert feed(window, 0.012, 1000) == MOST


def test_a_busy_api_server_gets_pauses_between_the_writes(window: CongestionWindow) -> None:
    """Beside other clients even one write at a time can keep it busy."""
    assert window.pause == 0, "nothing is known"
    feed(window, 0.002, 5)
    assert window.pause == 0, "it is as quick as ever"
    feed(window, 0.010, 30)
    assert window.pause == pytest.approx(0.010 * (1 / congestion.NARROWEST - 1))
    before = window.pause
    window.measured(0.002)
    assert 0 < window.pause < before / 4, "of a quick write, in a wider window"
    feed(window, 0.002, 10)
    assert window.pause == 0


def test_a_pause_is_short_however_slow_the_api_server_is(window: CongestionWindow) -> None:
    """A job that is deleted meanwhile has to stop within a second."""
    window.measured(0.002)
    assert feed(window, 30.0, 20) == 1
    assert window.pause == congestion.LONGEST_PAUSE == 0.1
