"""The remaining time is estimated from this machine's history, and from the running step's pace."""

import pytest
from devtools.testbed.cluster import estimate
from devtools.testbed.cluster.estimate import Progress


def test_history_beats_the_built_in_figure() -> None:
    assert estimate.expected("kubernetes", {}) == estimate.DEFAULTS["kubernetes"]
    assert estimate.expected("kubernetes", {"kubernetes": [10, 20, 3000]}) == 20


def test_unknown_steps_get_some_figure() -> None:
    assert estimate.expected("never heard of", {}) == estimate.UNKNOWN


def test_remaining_counts_down_and_includes_later_steps() -> None:
    history = {"a": [100], "b": [50]}
    assert estimate.remaining("a", 0, ["b"], history, Progress()) == 150
    assert estimate.remaining("a", 60, ["b"], history, Progress()) == 90
    assert estimate.remaining("a", 500, ["b"], history, Progress()) == 50, "an overdue step is expected to end now"


def test_a_fast_run_shortens_the_estimate() -> None:
    """90 of 100 packages in 9 s: the history of 1,000 s does not apply to this run."""
    left = estimate.remaining("a", 9, [], {"a": [1000]}, Progress(90, 100, "packages"))
    assert left < 120


def test_a_slow_run_lengthens_the_estimate() -> None:
    """Half is done at the expected end: the same time remains."""
    left = estimate.remaining("a", 100, [], {"a": [100]}, Progress(50, 100, "packages"))
    assert left == pytest.approx(100)


def test_the_first_packages_do_not_sway_it() -> None:
    assert estimate.remaining("a", 1, [], {"a": [100]}, Progress(5, 100, "packages")) == 99


def test_record_keeps_the_last_few_and_changes_nothing_else() -> None:
    before = {"a": [1.0, 2.0, 3.0, 4.0, 5.0], "b": [9.0]}
    after = estimate.record(before, "a", 6.04)
    assert after == {"a": [2.0, 3.0, 4.0, 5.0, 6.0], "b": [9.0]}
    assert before["a"][0] == 1.0


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (545, "9 min 05 s")])
def test_clock(seconds: float, text: str) -> None:
    assert estimate.clock(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(2, "less than 5 s"), (42, "about 40 s"), (545, "about 9 min")])
def test_about_is_no_finer_than_it_knows(seconds: float, text: str) -> None:
    assert estimate.about(seconds) == text


def test_fraction_of_nothing_countable_is_none() -> None:
    assert Progress().fraction == 0
    assert Progress(7, 5, "x").fraction == 1
