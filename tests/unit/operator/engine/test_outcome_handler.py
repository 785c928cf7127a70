"""What follows a run: the queue, the metrics, the log and the Events."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

import pytest
from support.fake_kube_api import ECHO, FakeKubeApi

from dljob_operator.engine.events import EventRecorder
from dljob_operator.engine.outcome import JobOutcome
from dljob_operator.engine.outcome_handler import OutcomeHandler
from dljob_operator.engine.queue.queue import NextRun
from dljob_operator.engine.queue.resource_versions import Written
from dljob_operator.engine.serving.metrics import Metrics
from dljob_operator.runner import RunEnding, RunResult
from dljob_operator.watches import Watch

WATCH = Watch(ECHO)
COMPLETED = RunResult(RunEnding.COMPLETED, seconds=0.25)
CHANGED = RunResult(RunEnding.COMPLETED, stats={"changed": 1}, seconds=0.25)
CANCELLED = RunResult(RunEnding.CANCELLED)
WROTE = frozenset({("pod", "7")})


class Queue:
    """Records what is returned; `delay` is the answer to each."""

    delay: float | None = 4.0

    def __init__(self) -> None:
        self.returned: list[dict[str, Any]] = []

    def done(
        self,
        key: str,
        *,
        ok: bool,
        again_after: float | None = None,
        wrote: Collection[Written] = (),
        next_run: NextRun = NextRun.ORDINARY,
    ) -> float | None:
        self.returned.append(
            {"key": key, "ok": ok, "again_after": again_after, "wrote": set(wrote), "next_run": next_run}
        )
        return self.delay

    def postponed(self, key: str) -> None:
        self.returned.append({"key": key, "postponed": True})


class Bench:
    def __init__(self, period: float | None = None) -> None:
        self.queue, self.api, self.metrics = Queue(), FakeKubeApi(), Metrics()
        self.job = self.api.add_job()
        self.handler = OutcomeHandler(self.queue, EventRecorder(self.api), self.metrics, lambda watch, obj: period)

    def handle(self, outcome: JobOutcome, result: RunResult | None = COMPLETED, **more: Any) -> dict[str, Any]:
        self.handler.handle(WATCH, self.job, outcome, result, **more)
        return self.queue.returned[-1]

    def count(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, {"kind": str(ECHO), **labels})


def logged(caplog: pytest.LogCaptureFixture, message: str) -> tuple[int, dict[str, Any]]:
    """The level and the fields of the only record with this message."""
    (record,) = [record for record in caplog.records if record.message == message]
    return record.levelno, record.__dict__["dljob_fields"]


@pytest.fixture(autouse=True)
def all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "dljob_operator")


def test_a_postponed_job_has_no_outcome(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(period=60.0)
    assert bench.handle(JobOutcome(True, postponed=True), batch=2) == {"key": "1", "postponed": True}
    for result in ("ok", "failed"):
        assert not bench.count("dljob_reconciles_total", result=result)
    assert logged(caplog, "reconcile postponed")[0] == logging.DEBUG


@pytest.mark.parametrize(
    ("requeue_after", "period", "expected"),
    [(None, None, None), (5.0, None, 5.0), (None, 60.0, 60.0), (5.0, 60.0, 5.0), (90.0, 60.0, 60.0), (0.0, 60.0, 0.0)],
)
def test_a_job_runs_again_at_its_own_time_or_after_its_period(
    requeue_after: float | None, period: float | None, expected: float | None
) -> None:
    returned = Bench(period).handle(JobOutcome(True, requeue_after=requeue_after, wrote=WROTE))
    assert returned == {
        "key": "1",
        "ok": True,
        "again_after": expected,
        "wrote": WROTE,
        "next_run": NextRun.ORDINARY,
    }


def test_a_failed_job_waits_for_its_backoff_only() -> None:
    returned = Bench(60.0).handle(JobOutcome(False, "no such role", requeue_after=5.0))
    assert (returned["ok"], returned["again_after"]) == (False, None)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (JobOutcome(True), NextRun.ORDINARY),
        (JobOutcome(True, continues=True), NextRun.CONTINUING),
        (JobOutcome(False, reported=False), NextRun.ALONE),
        (JobOutcome(False, reported=False, continues=True), NextRun.ALONE),
    ],
)
def test_how_the_next_run_takes_place(outcome: JobOutcome, expected: NextRun) -> None:
    assert Bench().handle(outcome)["next_run"] is expected


def test_a_failure_is_an_event_an_error_in_the_log_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.handle(JobOutcome(False, "no such role"), CHANGED)
    assert [(event["reason"], event["message"]) for event in bench.api.events()] == [
        ("ReconcileFailed", "no such role")
    ]
    level, fields = logged(caplog, "reconcile failed")
    assert level == logging.ERROR
    assert fields == {
        "kind": "EchoJob",
        "api_version": "example.com/v1",
        "namespace": "team",
        "name": "digits",
        "ok": False,
        "changed": True,
        "seconds": 0.25,
        "error": "no such role",
        "retry_seconds": 4.0,
    }
    assert (bench.count("dljob_reconciles_total", result="failed"), len(caplog.records)) == (1, 1)


def test_a_success_is_counted_and_no_event() -> None:
    bench = Bench()
    bench.handle(JobOutcome(True))
    assert (bench.count("dljob_reconciles_total", result="ok"), bench.api.requests()) == (1, [])


@pytest.mark.parametrize(
    ("wrote", "result", "batch", "level"),
    [
        (frozenset(), COMPLETED, 1, logging.DEBUG),
        (frozenset(), CHANGED, 1, logging.INFO),
        (frozenset(), CHANGED, 2, logging.DEBUG),
        (WROTE, COMPLETED, 1, logging.INFO),
        (WROTE, CHANGED, 2, logging.INFO),
        (WROTE, None, 1, logging.DEBUG),
    ],
    ids=["nothing", "by its task", "by the task of several jobs", "written", "one of several jobs", "no run"],
)
def test_only_a_reconcile_that_changed_something_is_logged_by_default(
    caplog: pytest.LogCaptureFixture, wrote: frozenset[Written], result: RunResult | None, batch: int, level: int
) -> None:
    Bench().handle(JobOutcome(True, wrote=wrote), result, batch=batch)
    found, fields = logged(caplog, "reconciled")
    assert found == level
    assert fields["ok"] is True
    assert fields.get("changed") == (None if result is None else level == logging.INFO)
    assert fields.get("batch") == (2 if batch == 2 else None)


def test_a_cancelled_run_returns_the_job_and_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(60.0)
    returned = bench.handle(JobOutcome(False, "cancelled", requeue_after=5.0), CANCELLED)
    assert (returned["key"], returned["ok"], returned["again_after"]) == ("1", True, None)
    assert len(bench.queue.returned) == 1
    assert bench.api.requests() == []
    assert bench.count("dljob_reconciles_total", result="failed") is None
    level, fields = logged(caplog, "reconcile cancelled")
    assert (level, fields["name"]) == (logging.INFO, "digits")
    assert len(caplog.records) == 1


@pytest.mark.parametrize("ok", [True, False])
def test_a_warning_is_logged_once_for_each_job(caplog: pytest.LogCaptureFixture, ok: bool) -> None:
    bench = Bench()
    outcome = JobOutcome(ok, warnings=("the field is deprecated", "another"))
    bench.handle(outcome)
    bench.handle(outcome)
    bench.job = bench.api.add_job("other", "2")
    bench.handle(outcome)
    found = [record for record in caplog.records if record.message == "reconcile warning"]
    assert {record.levelno for record in found} == {logging.WARNING}
    assert [(r.__dict__["dljob_fields"]["name"], r.__dict__["dljob_fields"]["warning"]) for r in found] == [
        ("digits", "the field is deprecated"),
        ("digits", "another"),
        ("other", "the field is deprecated"),
        ("other", "another"),
    ]


def test_a_run_is_counted_once_whatever_its_partial_results() -> None:
    bench = Bench()
    bench.handler.ran(WATCH, RunResult(RunEnding.COMPLETED, seconds=1.0, is_partial=True))
    assert bench.count("dljob_runs_total") is None
    bench.handler.ran(WATCH, RunResult(RunEnding.COMPLETED, seconds=2.0))
    assert (bench.count("dljob_runs_total"), bench.count("dljob_run_seconds_sum")) == (1, 2.0)


@pytest.mark.parametrize(
    ("ending", "level"),
    [
        (RunEnding.COMPLETED, logging.DEBUG),
        (RunEnding.CANCELLED, logging.DEBUG),
        (RunEnding.CRASHED, logging.WARNING),
        (RunEnding.TIMED_OUT, logging.WARNING),
    ],
)
def test_the_output_of_a_run_that_crashed_is_logged_by_default(
    caplog: pytest.LogCaptureFixture, ending: RunEnding, level: int
) -> None:
    Bench().handler.ran(WATCH, RunResult(ending, output="Traceback\n\n"))
    found, fields = logged(caplog, "run output")
    assert found == level
    assert fields == {"target": str(ECHO), "outcome": ending, "output": "Traceback"}


def test_of_a_long_output_the_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    Bench().handler.ran(WATCH, RunResult(RunEnding.CRASHED, output="a" + "b" * 4096))
    assert logged(caplog, "run output")[1]["output"] == "b" * 4096


def test_a_run_without_output_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    Bench().handler.ran(WATCH, RunResult(RunEnding.CRASHED))
    assert caplog.records == []
