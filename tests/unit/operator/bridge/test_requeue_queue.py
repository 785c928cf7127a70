"""When the requeue annotation of a job is written."""

from __future__ import annotations

import threading

import pytest
from support.clock import Clock

from dljob_operator.ansible_operator_bridge.requeue_queue import (
    ANNOTATION_TIMEOUT,
    LONGEST_HOLD,
    NEW_BEFORE_ONE,
    NEW_JOB_TIMEOUT,
    RequeueQueue,
)
from dljob_operator.ansible_operator_bridge.run_queue import Turn
from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.queue import SETTLE, NextRun
from dljob_operator.engine.queue.ready_lines import Line

KIND, OTHER = Flow("kind", "default"), Flow("other", "default")


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


def test_a_postponed_run_is_still_to_come(requeues: RequeueQueue, clock: Clock) -> None:
    """Neither its outcome nor its line changes, and a change meanwhile needs no annotation: the run will see it."""
    after_a_run(requeues, ok=False)
    requeues.begin("a")
    requeues.add("a", KIND, cause=("pod", "0"))
    requeues.postponed("a")
    requeues.postponed("unknown")
    requeues.add("a", KIND, cause=("pod", "1"))
    clock.now += 1.0
    assert (requeues.depth, due(requeues)) == (0, [])
    assert requeues.request("a").line is Line.OWNED, "it failed before"
    assert after_a_run(requeues, again_after=5.0) == 5.0, "no run is in progress any more"


def test_changes_and_deletions_of_jobs_are_counted(clock: Clock) -> None:
    counted: list[str] = []
    requeues = RequeueQueue(clock, on_change=counted.append)
    requeues.add("a", KIND, urgent=True)
    requeues.add("a", KIND, cause=("pod", "1"))
    assert counted == ["a"]
    requeues.discard("a")
    assert counted == ["a", "a"]


def test_a_job_without_a_run_is_not_annotated(requeues: RequeueQueue, clock: Clock) -> None:
    requeues.add("a", KIND, cause=("pod", "1"))
    clock.now += 1000
    assert due(requeues) == []


def test_a_burst_of_changes_after_a_run_is_one_annotation(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    for number in range(5):
        requeues.add("a", KIND, cause=("pod", str(number)))
    assert due(requeues) == []
    clock.now += SETTLE
    assert due(requeues) == ["a"]
    assert due(requeues) == []


def test_a_change_between_annotation_and_run_needs_no_other_annotation(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    requeues.add("a", KIND)
    clock.now += SETTLE
    assert due(requeues) == ["a"]
    requeues.add("a", KIND)
    clock.now += SETTLE
    assert due(requeues) == []
    assert after_a_run(requeues) is None


def test_a_run_cancels_a_scheduled_annotation(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    requeues.add("a", KIND)
    requeues.begin("a")
    clock.now += 10
    assert due(requeues) == []


def test_writes_of_a_run_do_not_requeue_its_job(requeues: RequeueQueue) -> None:
    requeues.begin("a")
    requeues.add("a", KIND, cause=("pod", "5"))
    assert requeues.done("a", ok=True, wrote=[("pod", "5")]) is None


def test_other_changes_during_a_run_requeue_its_job(requeues: RequeueQueue, clock: Clock) -> None:
    requeues.begin("a")
    requeues.add("a", KIND, cause=("pod", "5"))
    requeues.add("a", KIND, cause=("pod", "6"))
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
    requeues.add("a", KIND)
    clock.now += SETTLE
    assert due(requeues) == ["a"]
    clock.now += 40
    assert due(requeues) == []


def test_ansible_operator_retries_failed_runs(requeues: RequeueQueue, clock: Clock) -> None:
    requeues.begin("a")
    requeues.add("a", KIND)
    assert requeues.done("a", ok=False, again_after=5) is None
    clock.now += 60
    assert due(requeues) == []


def test_ansible_operator_tries_again_what_the_bridge_failed_to_do(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    assert requeues.request("a", by_bridge=True).line is Line.OWNED
    assert not requeues.has_failed("a")
    assert after_a_run(requeues, ok=False) == 0.0
    assert (due(requeues), requeues.has_failed("a")) == (["a"], True)
    requeues.request("a")
    assert after_a_run(requeues, ok=False) is None, "it repeats its own runs"
    requeues.request("a")
    after_a_run(requeues)
    assert not requeues.has_failed("a")


def test_overlapping_runs_end_with_the_last(requeues: RequeueQueue) -> None:
    requeues.begin("a")
    requeues.begin("a")
    requeues.add("a", KIND, cause=("pod", "5"))
    assert requeues.done("a", ok=True) is None
    assert requeues.done("a", ok=True) == SETTLE


def test_a_change_of_the_job_itself_is_seen_by_ansible_operator(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    requeues.add("a", KIND, urgent=True)
    clock.now += 1
    assert due(requeues) == []


def test_a_lost_annotation_is_written_again_at_the_next_change(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    requeues.add("a", KIND)
    clock.now += SETTLE
    assert due(requeues) == ["a"]
    clock.now += ANNOTATION_TIMEOUT
    requeues.add("a", KIND)
    clock.now += SETTLE
    assert due(requeues) == ["a"]


def test_a_failed_annotation_is_retried_with_backoff(requeues: RequeueQueue, clock: Clock) -> None:
    after_a_run(requeues)
    requeues.add("a", KIND)
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


class TestNewJobsComeFirst:
    @pytest.fixture
    def requeues(self, clock: Clock) -> RequeueQueue:
        """With the annotation of one job that would be due, were there no new jobs."""
        requeues = RequeueQueue(clock)
        after_a_run(requeues, "old")
        requeues.add("old", KIND)
        for number in range(100):
            requeues.add(f"new-{number}", KIND, urgent=True)
        clock.now += SETTLE
        return requeues

    def test_annotations_wait_while_new_jobs_do(self, requeues: RequeueQueue) -> None:
        assert due(requeues) == []
        for number in range(100):
            requeues.discard(f"new-{number}")
        assert due(requeues) == ["old"]

    def test_an_annotation_waits_for_some_new_jobs(self, requeues: RequeueQueue, clock: Clock) -> None:
        after_a_run(requeues, "another")
        requeues.add("another", KIND)
        clock.now += SETTLE
        for number in range(NEW_BEFORE_ONE):
            assert due(requeues) == []
            requeues.request(f"new-{number}")
        assert due(requeues) == ["old"]
        assert due(requeues) == [], "the other one waits for as many new jobs again"

    def test_a_large_job_waits_for_its_next_slice_in_its_line_only(self, requeues: RequeueQueue) -> None:
        after_a_run(requeues, "large", next_run=NextRun.CONTINUING)
        assert due(requeues) == ["large"]

    def test_an_annotation_waits_for_some_time_only(self, requeues: RequeueQueue, clock: Clock) -> None:
        """Whatever comes: ansible-operator may be busy with slow runs, and more new jobs come all the time."""
        assert due(requeues) == []
        began = clock.now
        while (found := due(requeues)) == []:
            clock.now += 1.0
            requeues.add(f"newer-{clock.now}", KIND, urgent=True)
        assert found == ["old"]
        assert began + LONGEST_HOLD <= clock.now < began + LONGEST_HOLD + 1.0

    @pytest.mark.parametrize("flow", [OTHER, Flow(KIND.target, "another tenant")])
    def test_other_new_jobs_hold_nothing_back(self, clock: Clock, flow: Flow) -> None:
        requeues = RequeueQueue(clock)
        after_a_run(requeues, "old")
        requeues.add("old", KIND)
        requeues.add("new", flow, urgent=True)
        clock.now += SETTLE
        assert due(requeues) == ["old"]

    def test_a_new_job_that_nobody_runs_holds_nothing_back_for_long(self, requeues: RequeueQueue, clock: Clock) -> None:
        assert due(requeues) == []
        clock.now += NEW_JOB_TIMEOUT - SETTLE
        requeues.request("new-0")
        clock.now += 2 * SETTLE
        assert due(requeues) == [], "others of them have their turn"
        clock.now += NEW_JOB_TIMEOUT
        assert due(requeues) == ["old"]

    def test_what_it_knows_of_new_jobs_does_not_grow(self, clock: Clock) -> None:
        standby = RequeueQueue(clock)
        for number in range(100):
            standby.add(f"new-{number}", KIND, urgent=True)
            clock.now += NEW_JOB_TIMEOUT
        new, bursts = standby._new, standby._bursts  # noqa: SLF001 - memory that no answer shows
        assert (len(new), bursts[KIND].waiting) == (1, 1)
        standby.discard("new-99")
        assert (len(new), len(bursts)) == (0, 0)


class TestTurns:
    def test_a_new_job_is_a_changed_one(self, requeues: RequeueQueue) -> None:
        requeues.add("a", KIND, urgent=True)
        assert requeues.request("a") == Turn(Line.CHANGED)

    def test_a_run_for_an_annotation_is_not(self, requeues: RequeueQueue, clock: Clock) -> None:
        after_a_run(requeues)
        requeues.add("a", KIND)
        clock.now += SETTLE
        assert due(requeues) == ["a"]
        assert requeues.request("a") == Turn(Line.OWNED)
        requeues.begin("a")
        requeues.done("a", ok=True)
        assert requeues.request("a") == Turn(Line.CHANGED), "a user has changed it"

    def test_a_job_of_an_earlier_process_is_not(self, requeues: RequeueQueue) -> None:
        assert requeues.request("a", reconciled_before=True) == Turn(Line.OWNED)
        after_a_run(requeues)
        assert requeues.request("a", reconciled_before=True) == Turn(Line.CHANGED)

    def test_a_run_that_ansible_operator_repeats_is_not(self, requeues: RequeueQueue) -> None:
        after_a_run(requeues, ok=False)
        assert requeues.request("a") == Turn(Line.OWNED)

    def test_a_large_job_continues_at_once_and_in_its_line(self, requeues: RequeueQueue) -> None:
        assert after_a_run(requeues, next_run=NextRun.CONTINUING, again_after=1.0) == 0.0
        assert due(requeues) == ["a"]
        assert requeues.request("a") == Turn(Line.CONTINUING, may_share=False)

    def test_a_job_of_a_batch_that_crashed_runs_alone(self, requeues: RequeueQueue) -> None:
        after_a_run(requeues, ok=False, next_run=NextRun.ALONE)
        assert requeues.request("a") == Turn(Line.OWNED, may_share=False)
        after_a_run(requeues)
        assert requeues.request("a").may_share

    def test_changes_while_a_run_waits_need_no_annotation(self, requeues: RequeueQueue, clock: Clock) -> None:
        after_a_run(requeues)
        requeues.request("a")
        requeues.add("a", KIND, cause=("pod", "5"))
        clock.now += SETTLE
        assert due(requeues) == []
        assert after_a_run(requeues) is None
