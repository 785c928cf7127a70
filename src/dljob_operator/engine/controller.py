"""The controller: informers queue jobs, worker threads reconcile them and return the outcomes to the queue."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine import finalizers
from dljob_operator.engine.batch import BatchRunner, Reported, run_batch
from dljob_operator.engine.cache import transforms
from dljob_operator.engine.cache.informer_set import InformerSet, WatchedKind
from dljob_operator.engine.cache.predicates import Change, is_leaving, namespace_of, object_fields, uid_of
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.controller_settings import ControllerSettings
from dljob_operator.engine.events import EventRecorder
from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.engine.orphans import OrphanCollector
from dljob_operator.engine.outcome import JobOutcome, outcomes, written
from dljob_operator.engine.outcome_handler import OutcomeHandler
from dljob_operator.engine.queue.progress import stalled
from dljob_operator.engine.queue.queue import WorkQueue
from dljob_operator.engine.requests import beside_others, period_of, request_for_many, request_for_one
from dljob_operator.engine.serving.metrics import Metrics
from dljob_operator.engine.status import write_conditions
from dljob_operator.engine.workers import Work, Workers
from dljob_operator.runner import RunEnding, RunRequest, RunResult
from dljob_operator.watches import GVK, Watch

_LOG = logging.getLogger(__name__)


class Runner(BatchRunner, Protocol):
    """The part of RunnerClient that the controller uses."""

    def prepare(self, target: str) -> None: ...

    def run(self, request: RunRequest) -> RunResult: ...

    def close(self) -> None: ...


class Controller:
    """Reconciles the objects of every entry of `watches`.

    `start` returns immediately, `wait_ready` when all kinds have been listed, and `stop` when all threads have ended.
    `informers` fill the cache and the `queue`, and `work` is what each worker thread does. Set `on_job`
    before `start`: it gets each change of a job on the informers' threads, and must neither wait nor raise.
    """

    def __init__(
        self,
        watches: Sequence[Watch],
        api: KubeApi,
        runner: Runner,
        settings: ControllerSettings | None = None,
        *,
        metrics: Metrics | None = None,
    ) -> None:
        self._api = api
        self._runner = runner
        self._settings = settings or ControllerSettings()
        self._metrics = metrics = metrics or Metrics()
        self.on_job: Callable[[Change], None] = lambda change: None
        self._prepared: set[str] = set()
        self.queue = WorkQueue(threads=self._settings.max_concurrent, on_change=runner.changes.increment)
        self.informers = InformerSet(watches, api, self._settings, self.queue, self._job_changed)
        self._outcome_handler = OutcomeHandler(self.queue, EventRecorder(api), metrics, self._period)
        self.work = Work(
            take=self.take,
            handle=self._reconcile,
            abandon=lambda key: self.queue.done(key, ok=False),
            close=self.queue.close,
            threads=self._settings.max_concurrent,
        )
        self._orphans = OrphanCollector(api, self.informers.orphans)
        self._workers = Workers([self.work], self.informers, runner)
        metrics.watch(lambda: self.queue.depth)

    def start(self) -> None:
        self._workers.start()
        self._orphans.start()

    def wait_ready(self) -> tuple[list[GVK], list[GVK]]:
        """Wait until all informers have synced; return the kinds that are watched and the kinds that are not served."""
        return self.informers.wait_ready()

    def problem(self) -> str:
        """Why jobs are no longer watched or reconciled, "" if they are."""
        return (
            self._workers.problem()
            or self.informers.problem()
            or stalled(self.queue, self.informers, self._settings.run_timeout)
        )

    def not_ready(self) -> str:
        """Why the cache is not up to date, "" if it is."""
        return self.informers.not_ready()

    def stop(self, grace: float) -> None:
        """Start no more runs, wait `grace` seconds for those in progress, kill the others, and end all threads."""
        self._orphans.stop()
        self._workers.stop(grace)

    def _job_changed(self, target: str, change: Change) -> None:
        """On an informer's thread: while the other lists come in, a worker starts for the first job of each kind."""
        self._metrics.job_changed(target, change)
        self.on_job(change)
        kind = self.informers.kind(target)
        if target not in self._prepared and kind is not None and kind.watch.long_lived:
            self._prepared.add(target)
            self._runner.prepare(target)

    # Reconciles (on the workers' threads)

    def take(self, timeout: float | None = None) -> list[str] | None:
        """Wait for the jobs of the next run; return [] after `timeout` seconds (0 does not wait), None at the end."""
        return self.queue.get(self._batch_limit, timeout, self.informers.may_share)

    def _batch_limit(self, target: str) -> int:
        kind = self.informers.kind(target)
        return self._settings.largest_batch if kind is not None and kind.watch.batchable else 1

    def _reconcile(self, keys: Sequence[str]) -> None:
        """Reconcile the jobs `keys`, all of one kind, and mark each as done in the queue."""
        ordinary: list[Object] = []
        of_kind: WatchedKind | None = None
        # a change after this may be missing in what the cache returns
        taken = self._runner.changes.counts(keys)
        for key in keys:
            found = self.informers.find(key)
            if found is None:
                self.queue.done(key, ok=True)
                continue
            kind, resource = found
            if is_leaving(resource):
                self._finalize(kind, resource)
                continue
            prepared = self._prepare(kind, resource)
            if prepared is not None:
                ordinary.append(prepared)
                of_kind = kind
        if of_kind is not None:
            self._run(of_kind, ordinary, taken)

    def _prepare(self, kind: WatchedKind, resource: Object) -> Object | None:
        """Add the finalizer of the watch entry, if it has one, and return the object; None if that failed."""
        if not finalizers.needs_finalizer(kind.watch, resource) or kind.api_resource is None:
            return resource
        try:
            return transforms.custom(finalizers.add_finalizer(self._api, kind.api_resource, kind.watch, resource))
        except (ApiError, ApiConnectionError) as error:
            self._outcome_handler.handle(kind.watch, resource, JobOutcome(False, f"cannot add the finalizer: {error}"))
            return None

    def _finalize(self, kind: WatchedKind, resource: Object) -> None:
        """Run the finalizer of an object that is being deleted, if the object has the one of its watch entry."""
        if not finalizers.is_finalizing(kind.watch, resource) or kind.api_resource is None:
            self.queue.done(uid_of(resource), ok=True)
            return
        cache = replace(self.informers.view([resource]), cluster_info=None)
        request = request_for_one(kind.watch, resource, cache, self._settings.run_timeout, finalizing=True)
        result = self._runner.run(request)
        outcome = outcomes(result, [uid_of(resource)])[uid_of(resource)]
        self._outcome_handler.ran(kind.watch, result)
        if outcome.ok:
            try:
                finalizers.remove_finalizer(self._api, kind.api_resource, kind.watch, resource)
            except (ApiError, ApiConnectionError) as error:
                outcome = JobOutcome(False, f"cannot remove the finalizer: {error}")
        self._outcome_handler.handle(kind.watch, resource, outcome, result)

    def _run(self, kind: WatchedKind, resources: Sequence[Object], taken: Mapping[str, int]) -> None:
        timeout, cache = self._settings.run_timeout, self.informers.view(resources)
        if len(resources) == 1 and not kind.watch.long_lived:
            request = request_for_one(kind.watch, resources[0], cache, timeout)
        else:
            request = request_for_many(kind.watch, resources, cache, timeout)
        uids = [uid_of(resource) for resource in resources]
        request = beside_others(
            request,
            is_contended=self.queue.is_contended(uids),
            taken=taken,
            continuing=self.queue.continuing(uids),
            threads=self._settings.max_concurrent,
        )
        with run_batch(self._runner, request, resources) as reports:
            for reported in reports:
                self._outcome_handler.ran(kind.watch, reported.result)
                self.informers.wait_for(written(outcome for _, outcome in reported.jobs))
                self._handle_all(kind, reported)

    def _handle_all(self, kind: WatchedKind, reported: Reported) -> None:
        for resource, outcome in reported.jobs:
            self.queue.took(namespace_of(resource), outcome.seconds)
            was_run = not outcome.postponed and reported.result.ending is not RunEnding.CANCELLED
            if kind.watch.manage_status and was_run:
                self._manage_status(kind, resource, outcome, reported.result.stats)
            self._outcome_handler.handle(kind.watch, resource, outcome, reported.result, batch=len(reported.jobs))

    def _manage_status(
        self, kind: WatchedKind, resource: Object, outcome: JobOutcome, stats: Mapping[str, int]
    ) -> None:
        if kind.api_resource is None:
            return
        try:
            write_conditions(self._api, kind.api_resource, resource, outcome, stats)
        except (ApiError, ApiConnectionError) as error:
            _LOG.warning("cannot write the conditions", extra=logs.fields(**object_fields(resource), error=error))

    def _period(self, watch: Watch, resource: Object) -> float | None:
        try:
            return period_of(watch, resource, self._settings.reconcile_period)
        except ValueError as error:
            _LOG.warning(
                "invalid reconcile-period annotation; using the default period",
                extra=logs.fields(**object_fields(resource), error=error),
            )
            return watch.reconcile_period or self._settings.reconcile_period or None
