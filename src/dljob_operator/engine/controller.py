"""The controller: informers queue jobs, worker threads reconcile them and return the outcomes to the queue."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import LABEL_MANAGED_BY, MANAGER
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine import finalizers, transforms
from dljob_operator.engine.cluster_info import ClusterInfoWatcher
from dljob_operator.engine.discovery import CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES, Resource, find_resource
from dljob_operator.engine.events import EventRecorder
from dljob_operator.engine.informer import Informer
from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.engine.log_deduplicator import LogDeduplicator
from dljob_operator.engine.metrics import Metrics
from dljob_operator.engine.outcome import JobOutcome, outcomes
from dljob_operator.engine.predicates import (
    Change,
    custom_predicate,
    is_leaving,
    object_fields,
    owned_predicate,
    owner_uid,
    uid_of,
    version_of,
)
from dljob_operator.engine.queue import WorkQueue
from dljob_operator.engine.requests import period_of, request_for_many, request_for_one, target_name
from dljob_operator.engine.resource_versions import ResourceVersionTracker, Written
from dljob_operator.engine.status import write_conditions
from dljob_operator.engine.transforms import Object
from dljob_operator.runner import RunOutcome, RunRequest, RunResult
from dljob_operator.watches import GVK, Watch

_LOG = logging.getLogger(__name__)
MANAGED = f"{LABEL_MANAGED_BY}={MANAGER}"
LARGEST_BATCH = 25
_CACHE_TIMEOUT = 5.0  # seconds to wait until the cache has observed the writes of a run
_OUTPUT_SHOWN = 4096
_OWNED: Mapping[str, tuple[Resource, transforms.Transform]] = {
    "Pod": (PODS, transforms.pod),
    "Service": (SERVICES, transforms.service),
    "ConfigMap": (CONFIG_MAPS, transforms.existence),
    "Deployment": (DEPLOYMENTS, transforms.existence),
}


class Runner(Protocol):
    """The part of RunnerClient that the controller uses."""

    def run(self, request: RunRequest) -> RunResult: ...

    def results(self, request: RunRequest) -> Iterator[RunResult]: ...

    def close(self) -> None: ...


class JobQueue(Protocol):
    """The part of a queue that the controller uses. `WorkQueue` is the usual implementation."""

    def add(
        self, key: str, group: Hashable, *, cause: Written | None = ..., urgent: bool = ..., owned: int = ...
    ) -> None: ...

    def discard(self, key: str) -> None: ...

    def get(self, limit: Callable[[Hashable], int]) -> list[str] | None: ...

    def done(
        self,
        key: str,
        *,
        ok: bool,
        again_after: float | None = ...,
        wrote: Collection[Written] = ...,
        alone: bool = ...,
    ) -> float | None: ...

    def close(self) -> None: ...

    @property
    def depth(self) -> int: ...


@dataclass(frozen=True)
class Settings:
    """Settings of the controller. Times are in seconds; empty `namespaces` means all."""

    namespaces: tuple[str, ...] = ()
    selector: str = ""
    """The controller reconciles only jobs that match this label selector."""
    max_concurrent: int = 2
    reconcile_period: float = 36_000.0
    run_timeout: float = 300.0
    largest_batch: int = LARGEST_BATCH
    own_namespace: str = ""
    """The namespace in which the operator runs, "" outside a cluster."""


@dataclass
class _Kind:
    """A watched kind: its watch entry, its API resource (None while it is not served) and its informers."""

    watch: Watch
    resource: Resource | None = None
    informers: list[Informer] = field(default_factory=list)

    def get(self, uid: str) -> Object | None:
        return next((obj for one in self.informers if (obj := one.store.get(uid)) is not None), None)


class Controller:
    """Reconciles the objects of every entry of `watches`.

    `start` returns immediately, `wait_ready` when all kinds have been listed, and `stop` when all threads have ended.
    """

    def __init__(
        self,
        watches: Sequence[Watch],
        api: KubeApi,
        runner: Runner,
        settings: Settings | None = None,
        *,
        queue: JobQueue | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._api = api
        self._runner = runner
        self._settings = settings or Settings()
        self._queue: JobQueue = queue or WorkQueue()
        self._seen = ResourceVersionTracker()
        self._recorder = EventRecorder(api)
        self._warned = LogDeduplicator()
        self._stopping = threading.Event()
        self._kinds = {target_name(watch): self._kind(watch) for watch in watches}
        self._owned = {name: self._owned_informers(name) for name in _OWNED}
        self._cluster_info = ClusterInfoWatcher(api, self._settings.own_namespace, self._cluster_info_changed)
        self._threads: list[threading.Thread] = []
        self._metrics = metrics or Metrics()
        self._metrics.watch(self._jobs, lambda: self._queue.depth)

    def _jobs(self) -> Iterator[tuple[str, Object]]:
        for name, kind in self._kinds.items():
            for informer in kind.informers:
                for obj in informer.store.all():
                    yield name, obj

    @property
    def _informers(self) -> list[Informer]:
        custom = [informer for kind in self._kinds.values() for informer in kind.informers]
        owned = [informer for informers in self._owned.values() for informer in informers]
        return [*custom, *owned, *self._cluster_info.informers]

    def start(self) -> None:
        for informer in self._informers:
            informer.start()
        for number in range(self._settings.max_concurrent):
            thread = threading.Thread(target=self._work, name=f"worker {number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def wait_ready(self) -> tuple[list[GVK], list[GVK]]:
        """Wait until all informers have synced; return the kinds that are watched and the kinds that are not served."""
        for informer in self._informers:
            informer.has_synced.wait()
        missing = [kind.watch.gvk for kind in self._kinds.values() if any(i.missing_now for i in kind.informers)]
        return [kind.watch.gvk for kind in self._kinds.values() if kind.watch.gvk not in missing], missing

    def stop(self, grace: float) -> None:
        """Start no more runs, wait `grace` seconds for those in progress, kill the others, and end all threads."""
        self._stopping.set()
        self._queue.close()
        for informer in self._informers:
            if not informer.has_synced.is_set():
                informer.stop()  # worker threads wait for the first lists and have started no run before
        deadline = time.monotonic() + grace
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            _LOG.warning("ending runs that did not end in time", extra=logs.fields(grace_seconds=grace))
        self._runner.close()
        for informer in self._informers:
            informer.stop()
        for thread in self._threads:
            thread.join()
        for informer in self._informers:
            informer.join(_CACHE_TIMEOUT)

    # Informers

    def _kind(self, watch: Watch) -> _Kind:
        kind = _Kind(watch)
        gvk = watch.gvk
        missing = (
            f"the cluster has no {gvk.kind} in {gvk.api_version}: its CustomResourceDefinition is not "
            "installed; run 'kubectl apply --server-side -f crds/' or start with --install-crds"
        )

        def find() -> Resource | None:
            kind.resource = find_resource(self._api, gvk)
            return kind.resource

        for namespace in self._settings.namespaces or ("",):
            kind.informers.append(
                Informer(
                    self._api,
                    str(gvk),
                    find,
                    lambda change: self._custom_changed(kind, change),
                    transform=transforms.custom,
                    namespace=namespace,
                    selector=",".join(filter(None, (watch.selector, self._settings.selector))),
                    missing=missing,
                )
            )
        return kind

    def _owned_informers(self, name: str) -> list[Informer]:
        resource, transform = _OWNED[name]
        return [
            Informer(
                self._api,
                resource.plural,
                lambda: resource,
                lambda change: self._owned_changed(name, change),
                transform=transform,
                namespace=namespace,
                selector=MANAGED,
            )
            for namespace in self._settings.namespaces or ("",)
        ]

    # Watch events (on the informers' threads)

    def _custom_changed(self, kind: _Kind, change: Change) -> None:
        self._note(change)
        self._metrics.job_changed(target_name(kind.watch), change)
        uid = uid_of(change.obj)
        if change.new is None:
            self._queue.discard(uid)
        elif custom_predicate(change):
            cause = (uid, version_of(change.new))
            # After a start all existing jobs seem new. A job with a status was reconciled before, so new jobs go first.
            reconciled_before = change.old is None and bool(change.new.get("status"))
            self._queue.add(uid, target_name(kind.watch), cause=cause, urgent=not reconciled_before)

    def _owned_changed(self, name: str, change: Change) -> None:
        self._note(change)
        owner = owner_uid(change.obj)
        if owner is None or not owned_predicate(change):
            return
        for target, kind in self._kinds.items():
            if kind.get(owner) is not None and _watches_owned(kind.watch, name):
                version = None if change.new is None else version_of(change.new)
                owned = sum(informer.store.count(owner) for informer in self._owned[name])
                self._queue.add(owner, target, cause=(uid_of(change.obj), version), owned=owned)

    def _cluster_info_changed(self) -> None:
        """Requeue all unfinished jobs, because any of them may wait for this change.

        The controller does not track which jobs wait; a reconcile of another job writes nothing.
        """
        for target, obj in self._jobs():
            if not (obj.get("status") or {}).get("completionTime"):
                self._queue.add(uid_of(obj), target)

    def _note(self, change: Change) -> None:
        obj = change.obj
        self._seen.note(uid_of(obj), version_of(obj), leaving=is_leaving(obj), gone=change.new is None)

    # Reconciles (on the worker threads)

    def _work(self) -> None:
        for informers in (*self._owned.values(), self._cluster_info.informers):
            for informer in informers:
                informer.has_synced.wait()
        while (keys := self._queue.get(self._batch_limit)) is not None:
            try:
                self._reconcile(keys)
            except Exception:
                _LOG.exception("reconcile failed with an internal error")
                for key in keys:
                    self._queue.done(key, ok=False)

    def _batch_limit(self, target: object) -> int:
        return self._settings.largest_batch if self._kinds[str(target)].watch.batchable else 1

    def _reconcile(self, keys: Sequence[str]) -> None:
        """Reconcile the jobs `keys`, all of one kind, and mark each as done in the queue."""
        ordinary: list[Object] = []
        for key in keys:
            kind, obj = self._find(key)
            if kind is None or obj is None:
                self._queue.done(key, ok=True)
                continue
            if is_leaving(obj):
                self._finalize(kind, obj)
                continue
            parsed = self._prepare(kind, obj)
            if parsed is not None:
                ordinary.append(parsed)
        if ordinary:
            kind, _ = self._find(uid_of(ordinary[0]))
            assert kind is not None
            self._run(kind, ordinary)

    def _find(self, uid: str) -> tuple[_Kind | None, Object | None]:
        for kind in self._kinds.values():
            obj = kind.get(uid)
            if obj is not None:
                return kind, obj
        return None, None

    def _prepare(self, kind: _Kind, obj: Object) -> Object | None:
        """Add the finalizer of the watch entry, if it has one, and return the object; None if that failed."""
        if not finalizers.needs_finalizer(kind.watch, obj) or kind.resource is None:
            return obj
        try:
            return transforms.custom(finalizers.add_finalizer(self._api, kind.resource, kind.watch, obj))
        except (ApiError, ApiConnectionError) as error:
            self._conclude(kind, obj, JobOutcome(False, f"cannot add the finalizer: {error}"))
            return None

    def _finalize(self, kind: _Kind, obj: Object) -> None:
        """Run the finalizer of an object that is being deleted, if the object has the one of its watch entry."""
        if not finalizers.is_finalizing(kind.watch, obj) or kind.resource is None:
            self._queue.done(uid_of(obj), ok=True)
            return
        request = request_for_one(kind.watch, obj, self._snapshot([obj]), self._settings.run_timeout, finalizing=True)
        result = self._runner.run(request)
        outcome = outcomes(result, [uid_of(obj)])[uid_of(obj)]
        self._log_run(kind, result)
        if outcome.ok:
            try:
                finalizers.remove_finalizer(self._api, kind.resource, kind.watch, obj)
            except (ApiError, ApiConnectionError) as error:
                outcome = JobOutcome(False, f"cannot remove the finalizer: {error}")
        self._conclude(kind, obj, outcome, result)

    def _run(self, kind: _Kind, objs: Sequence[Object]) -> None:
        timeout, snapshot, info = self._settings.run_timeout, self._snapshot(objs), self._cluster_info.snapshot()
        if len(objs) == 1 and not kind.watch.long_lived:
            request = request_for_one(kind.watch, objs[0], snapshot, timeout, cluster_info=info)
        else:
            request = request_for_many(kind.watch, objs, snapshot, timeout, cluster_info=info)
        unreported = {uid_of(obj): obj for obj in objs}
        results = self._runner.results(request)
        try:
            for result in results:
                job_outcomes = outcomes(result, list(unreported), shared=len(objs) > 1)
                reported = [unreported.pop(uid) for uid in job_outcomes]
                self._log_run(kind, result)
                self._wait_for_cache(job_outcomes.values())
                self._conclude_all(kind, reported, job_outcomes, result)
        finally:
            for (
                _
            ) in results:  # after an error here, wait for the end of the run: it still writes for jobs without a result
                pass

    def _conclude_all(
        self, kind: _Kind, objs: Sequence[Object], job_outcomes: Mapping[str, JobOutcome], result: RunResult
    ) -> None:
        for obj in objs:
            outcome = job_outcomes[uid_of(obj)]
            if kind.watch.manage_status and result.ending is not RunOutcome.CANCELLED:
                self._manage_status(kind, obj, outcome, result.stats)
            self._conclude(kind, obj, outcome, result, batch=len(objs))

    def _snapshot(self, objs: Sequence[Object]) -> dict[str, dict[str, list[Object]]]:
        return {
            uid_of(obj): {
                name: [owned for informer in informers for owned in informer.store.owned(uid_of(obj))]
                for name, informers in self._owned.items()
            }
            for obj in objs
        }

    def _wait_for_cache(self, job_outcomes: Collection[JobOutcome]) -> None:
        """Wait until the cache has observed what the run wrote, so that the next run does not use older state."""
        wrote = frozenset().union(*(outcome.wrote for outcome in job_outcomes))
        if not self._stopping.is_set() and not self._seen.wait_for(wrote, _CACHE_TIMEOUT):
            _LOG.warning(
                "timed out waiting for the cache to observe our writes",
                extra=logs.fields(timeout_seconds=_CACHE_TIMEOUT),
            )

    def _manage_status(self, kind: _Kind, obj: Object, outcome: JobOutcome, stats: Mapping[str, int]) -> None:
        if kind.resource is None:
            return
        try:
            write_conditions(self._api, kind.resource, obj, outcome, stats)
        except (ApiError, ApiConnectionError) as error:
            _LOG.warning("cannot write the conditions", extra=logs.fields(**object_fields(obj), error=error))

    def _conclude(
        self, kind: _Kind, obj: Object, outcome: JobOutcome, result: RunResult | None = None, *, batch: int = 1
    ) -> None:
        """Give a job back to the queue and log its outcome; record an Event on the job if its reconcile failed.

        `batch` is the number of jobs in the run. The counts in the `result` of several jobs are not those of this job.
        """
        uid = uid_of(obj)
        values: dict[str, Any] = {**object_fields(obj), "ok": outcome.ok}
        if result is not None:
            values["changed"] = bool(outcome.wrote or (batch == 1 and result.stats.get("changed")))
            values["seconds"] = result.seconds
            values["batch"] = batch if batch > 1 else None
            if result.ending is RunOutcome.CANCELLED:
                _LOG.info("reconcile cancelled", extra=logs.fields(**values))
                self._queue.done(uid, ok=True)
                return
        again = _earliest(outcome.requeue_after, self._period(kind, obj)) if outcome.ok else None
        self._metrics.reconciled(target_name(kind.watch), ok=outcome.ok)
        delay = self._queue.done(uid, ok=outcome.ok, again_after=again, wrote=outcome.wrote, alone=not outcome.reported)
        for warning in outcome.warnings:
            if self._warned.is_new((uid, warning)):
                _LOG.warning("reconcile warning", extra=logs.fields(**object_fields(obj), warning=warning))
        if outcome.ok:
            # Most reconciles have nothing to do: those are logged at debug level only.
            level = logging.INFO if values.get("changed") else logging.DEBUG
            _LOG.log(level, "reconciled", extra=logs.fields(**values))
            return
        _LOG.error("reconcile failed", extra=logs.fields(**values, error=outcome.message, retry_seconds=delay))
        self._recorder.warn(obj, "ReconcileFailed", outcome.message)

    def _period(self, kind: _Kind, obj: Object) -> float | None:
        try:
            return period_of(kind.watch, obj, self._settings.reconcile_period)
        except ValueError as error:
            _LOG.warning(
                "invalid reconcile-period annotation; using the default period",
                extra=logs.fields(**object_fields(obj), error=error),
            )
            return kind.watch.reconcile_period or self._settings.reconcile_period or None

    def _log_run(self, kind: _Kind, result: RunResult) -> None:
        target = target_name(kind.watch)
        if not result.is_partial:
            self._metrics.ran(target, result.seconds)
        if result.output:
            # The message of a failed task names the cause; for a run that crashed only its output can.
            crashed = result.ending in (RunOutcome.CRASHED, RunOutcome.TIMED_OUT)
            level = logging.WARNING if crashed else logging.DEBUG
            output = result.output[-_OUTPUT_SHOWN:].rstrip()
            _LOG.log(level, "run output", extra=logs.fields(target=target, outcome=result.ending, output=output))


def _watches_owned(watch: Watch, kind: str) -> bool:
    """Whether changes of owned objects of a `kind` requeue the jobs of `watch`.

    `watchDependentResources` does not matter here: it controls the watches of ansible-operator, which ignore the status
    of pods. The engine always watches objects with our label.
    """
    group, version = _OWNED[kind][0].prefix.rpartition("/")[::2]
    return GVK(group.removeprefix("/apis/") if group != "/api" else "", version, kind) not in watch.blacklist


def _earliest(*delays: float | None) -> float | None:
    return min((delay for delay in delays if delay is not None), default=None)
