"""What follows a run: the job returns to the queue, and its outcome is logged, counted and, if bad, an Event."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, Protocol

from dljob_operator import logs
from dljob_operator.engine.cache.predicates import object_fields, uid_of
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.events import EventRecorder
from dljob_operator.engine.log_deduplicator import LogDeduplicator
from dljob_operator.engine.outcome import JobOutcome
from dljob_operator.engine.queue.queue import NextRun
from dljob_operator.engine.queue.resource_versions import Written
from dljob_operator.engine.requests import target_name
from dljob_operator.engine.serving.metrics import Metrics
from dljob_operator.runner import RunEnding, RunResult
from dljob_operator.watches import Watch

_LOG = logging.getLogger(__name__)
_OUTPUT_SHOWN = 4096


class EndedRuns(Protocol):
    """Takes jobs back after their runs; each queue does."""

    def done(
        self,
        key: str,
        *,
        ok: bool,
        again_after: float | None = ...,
        wrote: Collection[Written] = ...,
        next_run: NextRun = ...,
    ) -> float | None:
        """The run of the job `key` has ended; see `WorkQueue.done`."""
        ...

    def postponed(self, key: str) -> None:
        """The run of the job `key` did not reconcile it; see `WorkQueue.postponed`."""
        ...


class OutcomeHandler:
    """Handles the outcomes of the runs of one controller.

    `period` returns after how many seconds a job is reconciled without an event, None for never.
    """

    def __init__(
        self,
        queue: EndedRuns,
        recorder: EventRecorder,
        metrics: Metrics,
        period: Callable[[Watch, Object], float | None] = lambda watch, resource: None,
    ) -> None:
        self._queue = queue
        self._recorder = recorder
        self._metrics = metrics
        self._period = period
        self._warned = LogDeduplicator()

    def ran(self, watch: Watch, result: RunResult) -> None:
        """Count and log a result of a run, which may be partial."""
        target = target_name(watch)
        if not result.is_partial:
            self._metrics.ran(target, result.seconds)
        if result.output:
            # The message of a failed task names the cause; for a run that crashed only its output can.
            crashed = result.ending in (RunEnding.CRASHED, RunEnding.TIMED_OUT)
            level = logging.WARNING if crashed else logging.DEBUG
            output = result.output[-_OUTPUT_SHOWN:].rstrip()
            _LOG.log(level, "run output", extra=logs.fields(target=target, outcome=result.ending, output=output))

    def handle(
        self, watch: Watch, resource: Object, outcome: JobOutcome, result: RunResult | None = None, *, batch: int = 1
    ) -> None:
        """Give a job back to the queue and log its outcome; record an Event on the job if its reconcile failed.

        `batch` is the number of jobs in the run. The counts in the `result` of several jobs are not those of this job.
        """
        uid = uid_of(resource)
        values: dict[str, Any] = {**object_fields(resource), "ok": outcome.ok}
        if result is not None:
            values["changed"] = bool(outcome.wrote or (batch == 1 and result.stats.get("changed")))
            values["seconds"] = result.seconds
            values["batch"] = batch if batch > 1 else None
            if result.ending is RunEnding.CANCELLED:
                _LOG.info("reconcile cancelled", extra=logs.fields(**values))
                self._queue.done(uid, ok=True)
                return
        if outcome.postponed:
            _LOG.debug("reconcile postponed", extra=logs.fields(**values))
            self._queue.postponed(uid)
            return
        again = _earliest(outcome.requeue_after, self._period(watch, resource)) if outcome.ok else None
        self._metrics.reconciled(target_name(watch), ok=outcome.ok)
        delay = self._queue.done(
            uid, ok=outcome.ok, again_after=again, wrote=outcome.wrote, next_run=_next_run(outcome)
        )
        for warning in outcome.warnings:
            if self._warned.is_new((uid, warning)):
                _LOG.warning("reconcile warning", extra=logs.fields(**object_fields(resource), warning=warning))
        if outcome.ok:
            # Most reconciles have nothing to do: those are logged at debug level only.
            level = logging.INFO if values.get("changed") else logging.DEBUG
            _LOG.log(level, "reconciled", extra=logs.fields(**values))
            return
        _LOG.error("reconcile failed", extra=logs.fields(**values, error=outcome.message, retry_seconds=delay))
        self._recorder.warn(resource, "ReconcileFailed", outcome.message)


def _next_run(outcome: JobOutcome) -> NextRun:
    if not outcome.reported:
        return NextRun.ALONE
    return NextRun.CONTINUING if outcome.continues else NextRun.ORDINARY


def _earliest(*delays: float | None) -> float | None:
    return min((delay for delay in delays if delay is not None), default=None)
