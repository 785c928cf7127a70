"""When ansible-operator is told to look at a job again."""

from __future__ import annotations

import threading

import pytest

from dljob_operator.companion.nudges import ASKED_FOR, Nudges
from dljob_operator.engine.queue import SETTLE


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def nudges(clock: Clock) -> Nudges:
    return Nudges(clock)


def due(nudges: Nudges) -> list[str] | None:
    return nudges.take(lambda _: 1, timeout=0)


def after_a_run(nudges: Nudges, key: str = "a", **done: object) -> float | None:
    nudges.begin(key)
    return nudges.done(key, **{"ok": True, **done})  # type: ignore[arg-type]


def test_a_job_that_was_never_run_here_is_left_alone(nudges: Nudges, clock: Clock) -> None:
    nudges.add("a", "kind", cause=("pod", "1"))
    clock.now += 1000
    assert due(nudges) == []


def test_a_change_after_a_run_is_a_nudge_and_a_burst_is_one(nudges: Nudges, clock: Clock) -> None:
    after_a_run(nudges)
    for number in range(5):
        nudges.add("a", "kind", cause=("pod", str(number)))
    assert due(nudges) == []
    clock.now += SETTLE
    assert due(nudges) == ["a"]
    assert due(nudges) == []


def test_what_happens_between_nudge_and_run_needs_no_other(nudges: Nudges, clock: Clock) -> None:
    after_a_run(nudges)
    nudges.add("a", "kind")
    clock.now += SETTLE
    assert due(nudges) == ["a"]
    nudges.add("a", "kind")
    clock.now += SETTLE
    assert due(nudges) == []
    assert after_a_run(nudges) is None


def test_a_run_that_began_anyway_takes_the_nudge_back(nudges: Nudges, clock: Clock) -> None:
    after_a_run(nudges)
    nudges.add("a", "kind")
    nudges.begin("a")
    clock.now += 10
    assert due(nudges) == []


def test_what_a_run_wrote_itself_is_no_reason(nudges: Nudges) -> None:
    nudges.begin("a")
    nudges.add("a", "kind", cause=("pod", "5"))
    assert nudges.done("a", ok=True, wrote=[("pod", "5")]) is None


def test_what_others_did_during_a_run_is_one(nudges: Nudges, clock: Clock) -> None:
    nudges.begin("a")
    nudges.add("a", "kind", cause=("pod", "5"))
    nudges.add("a", "kind", cause=("pod", "6"))
    assert nudges.done("a", ok=True, wrote=[("pod", "5")], again_after=50) == SETTLE
    clock.now += SETTLE
    assert due(nudges) == ["a"]


def test_a_time_that_the_run_named(nudges: Nudges, clock: Clock) -> None:
    assert after_a_run(nudges, again_after=30.0) == 30.0
    clock.now += 29
    assert due(nudges) == []
    clock.now += 1
    assert due(nudges) == ["a"]


def test_an_earlier_change_does_not_wait_for_that_time(nudges: Nudges, clock: Clock) -> None:
    after_a_run(nudges, again_after=30.0)
    nudges.add("a", "kind")
    clock.now += SETTLE
    assert due(nudges) == ["a"]
    clock.now += 40
    assert due(nudges) == []


def test_a_failed_run_is_ansible_operators_to_repeat(nudges: Nudges, clock: Clock) -> None:
    nudges.begin("a")
    nudges.add("a", "kind")
    assert nudges.done("a", ok=False, again_after=5) is None
    clock.now += 60
    assert due(nudges) == []


def test_overlapping_runs_end_with_the_last(nudges: Nudges) -> None:
    nudges.begin("a")
    nudges.begin("a")
    nudges.add("a", "kind", cause=("pod", "5"))
    assert nudges.done("a", ok=True) is None
    assert nudges.done("a", ok=True) == SETTLE


def test_a_change_of_the_job_itself_is_seen_by_ansible_operator(nudges: Nudges, clock: Clock) -> None:
    after_a_run(nudges)
    nudges.add("a", "kind", urgent=True)
    clock.now += 1
    assert due(nudges) == []


def test_a_nudge_that_was_lost_is_repeated_at_the_next_change(nudges: Nudges, clock: Clock) -> None:
    after_a_run(nudges)
    nudges.add("a", "kind")
    clock.now += SETTLE
    assert due(nudges) == ["a"]
    clock.now += ASKED_FOR
    nudges.add("a", "kind")
    clock.now += SETTLE
    assert due(nudges) == ["a"]


def test_an_annotation_that_could_not_be_written_is_tried_again_ever_later(nudges: Nudges, clock: Clock) -> None:
    after_a_run(nudges)
    nudges.add("a", "kind")
    pauses = []
    for _ in range(3):
        clock.now += 60
        assert due(nudges) == ["a"]
        pauses.append(nudges.failed("a"))
    assert pauses == [0.5, 1.0, 2.0]


def test_a_job_that_is_gone_is_forgotten(nudges: Nudges, clock: Clock) -> None:
    after_a_run(nudges, again_after=1.0)
    nudges.forget("a")
    clock.now += 5
    assert due(nudges) == []
    assert nudges.done("a", ok=True, again_after=1) is None


def test_closing_wakes_whoever_waits() -> None:
    nudges = Nudges()
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(nudges.take(lambda _: 1)))
    thread.start()
    nudges.close()
    thread.join(10)
    assert found == [None]
