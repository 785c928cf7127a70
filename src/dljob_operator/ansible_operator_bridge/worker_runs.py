"""Runs of roles with long-lived workers: they wait for a worker, which takes them with others of their kind.

The shim of each ends with its own job, not with the batch.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ANY_JOB

from dljob_operator.ansible_operator_bridge import artifacts, events
from dljob_operator.ansible_operator_bridge.parsed_run import ParsedRun, RunExit, newer
from dljob_operator.ansible_operator_bridge.requeue_queue import RequeueQueue
from dljob_operator.ansible_operator_bridge.run_queue import RunQueue, Turn
from dljob_operator.engine.batch import BatchRunner, run_batch
from dljob_operator.engine.cache.informer_set import InformerSet, WatchedKind, flow_of
from dljob_operator.engine.cache.predicates import namespace_of, uid_of, version_of
from dljob_operator.engine.cache.transforms import Object, custom
from dljob_operator.engine.controller_settings import ControllerSettings
from dljob_operator.engine.outcome import JobOutcome, written
from dljob_operator.engine.outcome_handler import OutcomeHandler
from dljob_operator.engine.queue.progress import Stall
from dljob_operator.engine.queue.ready_lines import Line
from dljob_operator.engine.queue.recent_changes import RecentChanges
from dljob_operator.engine.queue.resource_versions import number
from dljob_operator.engine.requests import beside_others, period_of, request_for_many, target_name
from dljob_operator.engine.workers import Work
from dljob_operator.runner import RunEnding

_STOPPED = JobOutcome(False, "the operator is stopping")


@dataclasses.dataclass(frozen=True)
class _Ended:
    """How a run of a long-lived worker ended for one job. A `cancelled` one is no result: it must be repeated."""

    outcome: JobOutcome
    cancelled: bool = False


@dataclasses.dataclass(frozen=True)
class _Requested:
    """A run that waits for a long-lived worker, or that one does. Nobody waits for one that `requeue` requested."""

    kind: WatchedKind
    resource: Object
    ended: Future[_Ended] = dataclasses.field(default_factory=Future)


class WorkerRuns:
    """The runs of one bridge. Any thread may call `run`; `work` is for the threads that wait for the workers."""

    def __init__(
        self,
        informers: InformerSet,
        runner: BatchRunner,
        requeues: RequeueQueue,
        handler: OutcomeHandler,
        settings: ControllerSettings,
    ) -> None:
        self._informers = informers
        self._runner = runner
        self._requeues = requeues
        self._outcome_handler = handler
        self._settings = settings
        self._runs: RunQueue[_Requested] = RunQueue(settings.max_concurrent)
        self._changes = RecentChanges(time.monotonic)
        self._changes_lock = threading.Lock()
        self.work = Work(
            lambda: self._runs.get(self._batch_limit),
            self._reconcile,
            self._abandon,
            self._close,
            threads=settings.max_concurrent,
        )

    def run(self, parsed: ParsedRun) -> RunExit:
        """Wait until a worker has done the run, and post its events; on the thread of the shim's connection."""
        resource = custom(dict(parsed.given.resource))
        turn = self._requeues.request(uid_of(resource), reconciled_before=bool(resource.get("status")))
        ended = self._add(_Requested(parsed.kind, resource), turn).result()
        return _report(parsed, ended, self._settings.reconcile_period)

    def requeue(self, kind: WatchedKind, resource: Object) -> None:
        """Let a worker reconcile a cached job; ansible-operator learns of it where that fails."""
        turn = self._requeues.request(uid_of(resource), by_bridge=True)
        self._add(_Requested(kind, resource), turn)

    def _add(self, requested: _Requested, turn: Turn) -> Future[_Ended]:
        resource = requested.resource
        uid = uid_of(resource)
        if not self._informers.may_share(uid, namespace_of(resource)):
            turn = dataclasses.replace(turn, may_share=False)
        if turn.line is Line.CHANGED:
            with self._changes_lock:
                self._changes.note(uid)
        if not self._runs.add(uid, flow_of(target_name(requested.kind.watch), resource), turn, requested):
            requested.ended.set_result(_Ended(_STOPPED, cancelled=True))
        return requested.ended

    @property
    def depth(self) -> int:
        """The number of runs that wait for a worker."""
        return self._runs.depth

    def stall(self, limit: float) -> Stall | None:
        """Return the job that has made no progress for more than `limit` seconds, None if all do."""
        return self._runs.stall(limit)

    def _batch_limit(self, target: str) -> int:
        return self._settings.largest_batch

    def _reconcile(self, keys: Sequence[str]) -> None:
        """Run the jobs `keys`, all of one kind, in a long-lived worker (on the workers' threads)."""
        # a change after this may be missing in what the cache returns
        taken = self._runner.changes.counts(keys)
        for key in keys:
            self._requeues.begin(key)
        requested = [self._runs.requests(key) for key in keys]
        kind = requested[0][0].kind
        jobs = [_newest([one.resource for one in each], kind) for each in requested]
        request = request_for_many(kind.watch, jobs, self._informers.view(jobs), self._settings.run_timeout)
        with self._changes_lock:
            is_contended = self._changes.any_but(keys)
        request = beside_others(
            request,
            is_contended=is_contended,
            taken=taken,
            continuing=self._runs.continuing(keys),
            threads=self._settings.max_concurrent,
        )
        # a job that is not in the cache may have been deleted while its run waited: the worker asks the API server
        known = {key: count for key, count in taken.items() if key == ANY_JOB or kind.get(key) is not None}
        request = dataclasses.replace(request, taken=known)
        with run_batch(self._runner, request, jobs) as reports:
            for reported in reports:
                self._outcome_handler.ran(kind.watch, reported.result)
                self._informers.wait_for(written(outcome for _, outcome in reported.jobs))
                cancelled = reported.result.ending is RunEnding.CANCELLED
                for resource, outcome in reported.jobs:
                    self._outcome_handler.handle(
                        kind.watch, resource, outcome, reported.result, batch=len(reported.jobs)
                    )
                    self._runs.took(namespace_of(resource), outcome.seconds)
                    if not outcome.postponed:
                        self._end(uid_of(resource), _Ended(outcome, cancelled))
                    elif not self._runs.postponed(uid_of(resource)):
                        self._end(uid_of(resource), _Ended(_STOPPED, cancelled=True))

    def _end(self, uid: str, ended: _Ended) -> None:
        for requested in self._runs.requests(uid):
            requested.ended.set_result(ended)
        self._runs.done(uid)

    def _abandon(self, uid: str) -> None:
        """End a run after an internal error, unless its outcome was handled before."""
        if self._runs.requests(uid):
            self._requeues.done(uid, ok=False)
            self._end(uid, _Ended(JobOutcome(False, "the operator failed with an internal error, see its log")))

    def _close(self) -> None:
        for requested in self._runs.close():
            requested.ended.set_result(_Ended(_STOPPED, cancelled=True))


def _report(parsed: ParsedRun, ended: _Ended, default_period: float) -> RunExit:
    """Post the events of the run; only a failed one leaves more artifacts than their folder."""
    asked, given, outcome = parsed.asked, parsed.given, ended.outcome
    found = RunExit(0, "") if outcome.ok else RunExit(2, f"failed: {outcome.message}\n")
    with artifacts.errors_logged(dict(given.resource)):
        artifacts.remove_input(asked)
        artifacts.prepare(asked)
        if not outcome.ok:
            artifacts.rotate(asked)
            artifacts.write(asked, found.output, found.code)
    if given.socket and not ended.cancelled:
        posted = events.of_job(outcome, str(asked.path), _period(parsed, default_period))
        events.post_all(given.socket, given.path, posted)
    return found


def _period(parsed: ParsedRun, default: float) -> float | None:
    """Return the period in seconds of a job that is ok, None where ansible-operator must read the job after the run.

    After an event with a period it does not, which saves a request: it only writes no conditions and minds no
    finalizer. It has no minimum for the period of an annotation, which a tenant chooses.
    """
    watch = parsed.kind.watch
    if watch.manage_status or watch.finalizer is not None:
        return None
    try:
        return period_of(watch, dict(parsed.given.resource), default) or 0.0
    except ValueError:  # that of the annotation, which ansible-operator then refuses before the run
        return default


def _newest(handed: Sequence[Object], kind: WatchedKind) -> Object:
    found = max(handed, key=lambda resource: number(version_of(resource)))
    return newer(found, kind.get(uid_of(found)))
