"""When the requeue annotation of a job is written."""

from __future__ import annotations

import threading

import pytest

from dljob_operator.ansible_operator_bridge.requeue_queue import ANNOTATION_TIMEOUT, RequeueQueue
from dljob_operator.engine.queue import SETTLE


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def requeues(clock: Clock) -> RequeueQueue:
    return RequeueQueue(clock)


def due(requeues: RequeueQueue) -> list[str] | None:
    return requeues.get(timeout=0)


def after_a_run(requeues: RequeueQueue, key: str = "a", **done: object) -> float | None:
    requeues.begin(key)
    return requeues.done(key, **{"ok": True, **done})  # type: ignore[arg-type]


def test_a_job_without_a_run_is_not_annotated(requeues: RequeueQueue, clock: Clock) -> None:
    requeues.add("a", "kind", cause=("pod", "1"))
    clock.now += 1000
    assert due(requeues) == []


def test_a_burst_of_changes_after_a_run_is_one_annotation(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    for number in range(5):
        requeues.add("a", "kind", cause=("pod", str(number)))
    assert due(requeues) == []
    clock.now += SETTLE
    assert due(requeues) == ["a"]
    assert due(requeues) == []


def test_a_change_between_annotation_and_run_needs_no_other_annotation(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    requeues.add("a", "kind")
    clock.now += SETTLE
    assert due(requeues) == ["a"]
    requeues.add("a", "kind")
    clock.now += SETTLE
    assert due(requeues) == []
    assert after_a_run(requeues) is None


def test_a_run_cancels_a_scheduled_annotation(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    requeues.add("a", "kind")
    requeues.begin("a")
    clock.now += 10
    assert due(requeues) == []


def test_writes_of_a_run_do_not_requeue_its_job(requeues: RequeueQueue) -> None:
    requeues.begin("a")
    requeues.add("a", "kind", cause=("pod", "5"))
    assert requeues.done("a", ok=True, wrote=[("pod", "5")]) is None


def test_other_changes_during_a_run_requeue_its_job(requeues: RequeueQueue, clock: Clock) -> None:
    requeues.begin("a")
    requeues.add("a", "kind", cause=("pod", "5"))
    requeues.add("a", "kind", cause=("pod", "6"))
    assert requeues.done("a", ok=True, wrote=[("pod", "5")], again_after=50) == SETTLE
    clock.now += SETTLE
    assert due(requeues) == ["a"]


def test_requeue_after_schedules_an_annotation(requeues: RequeueQueue, clock: Clock) -> None:
    assert after_a_run(requeues, again_after=30.0) == 30.0
    clock.now += 29
    assert due(requeues) == []
    clock.now += 1
    assert due(requeues) == ["a"]


def test_a_change_precedes_requeue_after(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues, again_after=30.0)
    requeues.add("a", "kind")
    clock.now += SETTLE
    assert due(requeues) == ["a"]
    clock.now += 40
    assert due(requeues) == []


def test_ansible_operator_retries_failed_runs(requeues: RequeueQueue, clock: Clock) -> None:
    requeues.begin("a")
    requeues.add("a", "kind")
    assert requeues.done("a", ok=False, again_after=5) is None
    clock.now += 60
    assert due(requeues) == []


def test_overlapping_runs_end_with_the_last(requeues: RequeueQueue) -> None:
    requeues.begin("a")
    requeues.begin("a")
    requeues.add("a", "kind", cause=("pod", "5"))
    assert requeues.done("a", ok=True) is None
    assert requeues.done("a", ok=True) == SETTLE


def test_a_change_of_the_job_itself_is_seen_by_ansible_operator(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    requeues.add("a", "kind", urgent=True)
    clock.now += 1
    assert due(requeues) == []


def test_a_lost_annotation_is_written_again_at_the_next_change(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    requeues.add("a", "kind")
    clock.now += SETTLE
    assert due(requeues) == ["a"]
    clock.now += ANNOTATION_TIMEOUT
    requeues.add("a", "kind")
    clock.now += SETTLE
    assert due(requeues) == ["a"]


def test_a_failed_annotation_is_retried_with_backoff(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    requeues.add("a", "kind")
    pauses = []
    for _ in range(3):
        clock.now += 60
        assert due(requeues) == ["a"]
        pauses.append(requeues.failed("a"))
    assert pauses == [0.5, 1.0, 2.0]


def test_a_deleted_job_is_removed(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues, again_after=1.0)
    requeues.discard("a")
    clock.now += 5
    assert due(requeues) == []
    assert requeues.done("a", ok=True, again_after=1) is None


def test_close_wakes_waiting_threads() -> None:
    requeues = RequeueQueue()
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(requeues.get()))
    thread.start()
    requeues.close()
    thread.join(10)
    assert found == [None]
