"""The controller: watches fill the queue, workers run what it gives out, and outcomes go back into it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dljob_operator.durations import format_seconds
from dljob_operator.engine import finalizers, transforms
from dljob_operator.engine.cluster_info import ClusterInfoWatcher
from dljob_operator.engine.discovery import CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES, Resource, find_resource
from dljob_operator.engine.events import EventRecorder
from dljob_operator.engine.informer import Informer
from dljob_operator.engine.kube import ApiConnectionError, ApiError, KubeApi
from dljob_operator.engine.log_deduplicator import LogDeduplicator
from dljob_operator.engine.metrics import Metrics
from dljob_operator.engine.outcome import JobOutcome, outcomes
from dljob_operator.engine.predicates import (
    Change,
    custom_predicate,
    is_leaving,
    owned_predicate,
    owner_uid,
    title,
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
MANAGED = "app.kubernetes.io/managed-by=dljob-operator"
LARGEST_BATCH = 25
_CATCH_UP = 5.0  # seconds that the watch may take to show what a run wrote
_OUTPUT_SHOWN = 4096
_OWNED: Mapping[str, tuple[Resource, transforms.Transform]] = {
    "Pod": (PODS, transforms.pod),
    "Service": (SERVICES, transforms.service),
    "ConfigMap": (CONFIG_MAPS, transforms.existence),
    "Deployment": (DEPLOYMENTS, transforms.existence),
}


class Runner(Protocol):
    """What the controller needs of the warm runner."""

    def run(self, request: RunRequest) -> RunResult: ...

    def results(self, request: RunRequest) -> Iterator[RunResult]: ...

    def close(self) -> None: ...


class JobQueue(Protocol):
    """What the controller needs of the queue: see `WorkQueue`, which is the usual one."""

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
    """How the controller works. Times are in seconds; no namespaces means all of them."""

    namespaces: tuple[str, ...] = ()
    selector: str = ""
    """A label selector: only jobs that it matches are this operator's."""
    max_concurrent: int = 2
    reconcile_period: float = 36_000.0
    run_timeout: float = 300.0
    largest_batch: int = LARGEST_BATCH
    own_namespace: str = ""
    """The namespace that the operator runs in, "" outside of a cluster."""


@dataclass
class _Kind:
    """A watched kind: its entry, where its objects are (None: not served yet) and who watches them."""

    watch: Watch
    resource: Resource | None = None
    informers: list[Informer] = field(default_factory=list)

    def get(self, uid: str) -> Object | None:
        return next((obj for one in self.informers if (obj := one.store.get(uid)) is not None), None)


class Controller:
    """Reconciles the objects of every entry of `watches`.

    `start` returns at once; `wait_ready` when every kind has been listed; `stop` when everything has ended.
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
        """Wait until everything was listed once; return the kinds that are watched, and those not served."""
        for informer in self._informers:
            informer.has_synced.wait()
        missing = [kind.watch.gvk for kind in self._kinds.values() if any(i.missing_now for i in kind.informers)]
        return [kind.watch.gvk for kind in self._kinds.values() if kind.watch.gvk not in missing], missing

    def stop(self, grace: float) -> None:
        """Begin no more runs, give those in pending `grace` seconds, kill the rest, and end every thread."""
        self._stopping.set()
        self._queue.close()
        for informer in self._informers:
            if not informer.has_synced.is_set():
                informer.stop()  # workers wait for the first lists; without those they have begun no run
        deadline = time.monotonic() + grace
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            _LOG.warning("ending runs that did not end within %s", format_seconds(grace))
        self._runner.close()
        for informer in self._informers:
            informer.stop()
        for thread in self._threads:
            thread.join()
        for informer in self._informers:
            informer.join(_CATCH_UP)

    # What is watched

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
        resource, trimmed = _OWNED[name]
        return [
            Informer(
                self._api,
                resource.plural,
                lambda: resource,
                lambda change: self._owned_changed(name, change),
                transform=trimmed,
                namespace=namespace,
                selector=MANAGED,
            )
            for namespace in self._settings.namespaces or ("",)
        ]

    # What happens (on the informers' threads)

    def _custom_changed(self, kind: _Kind, change: Change) -> None:
        self._note(change)
        self._metrics.job_changed(target_name(kind.watch), change)
        uid = uid_of(change.obj)
        if change.new is None:
            self._queue.discard(uid)
        elif custom_predicate(change):
            cause = (uid, version_of(change.new))
            # At a start every job there is looks new. Those that have a status are being looked after, or are over:
            # somebody's new job comes before them.
            waits = change.old is None and bool(change.new.get("status"))
            self._queue.add(uid, target_name(kind.watch), cause=cause, urgent=not waits)

    def _owned_changed(self, name: str, change: Change) -> None:
        self._note(change)
        owner = owner_uid(change.obj)
        if owner is None or not owned_predicate(change):
            return
        for target, kind in self._kinds.items():
            if kind.get(owner) is not None and _follows(kind.watch, name):
                version = None if change.new is None else version_of(change.new)
                owned = sum(informer.store.count(owner) for informer in self._owned[name])
                self._queue.add(owner, target, cause=(uid_of(change.obj), version), owned=owned)

    def _cluster_info_changed(self) -> None:
        """Look again at every job that is not over: one of them may have waited for just this.

        No-one remembers which do, so none can be forgotten; a look at a job that does not costs no write.
        """
        for target, obj in self._jobs():
            if not (obj.get("status") or {}).get("completionTime"):
                self._queue.add(uid_of(obj), target)

    def _note(self, change: Change) -> None:
        obj = change.obj
        self._seen.note(uid_of(obj), version_of(obj), leaving=is_leaving(obj), gone=change.new is None)

    # What is done about it (on the workers' threads)

    def _work(self) -> None:
        for informers in (*self._owned.values(), self._cluster_info.informers):
            for informer in informers:
                informer.has_synced.wait()
        while (keys := self._queue.get(self._batch_limit)) is not None:
            try:
                self._reconcile(keys)
            except Exception:
                _LOG.exception("a reconcile failed in the engine itself")
                for key in keys:
                    self._queue.done(key, ok=False)

    def _batch_limit(self, target: object) -> int:
        return self._settings.largest_batch if self._kinds[str(target)].watch.batchable else 1

    def _reconcile(self, keys: Sequence[str]) -> None:
        """Run the jobs `keys`, all of one kind, and give each back to the queue."""
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
        """Put the entry's finalizer on, where it asks for one; None where that failed."""
        if not finalizers.needs_finalizer(kind.watch, obj) or kind.resource is None:
            return obj
        try:
            return transforms.custom(finalizers.add_finalizer(self._api, kind.resource, kind.watch, obj))
        except (ApiError, ApiConnectionError) as error:
            self._conclude(kind, obj, JobOutcome(False, f"the finalizer could not be put on: {error}"))
            return None

    def _finalize(self, kind: _Kind, obj: Object) -> None:
        """Deal with an object that is being deleted: only a finalizer of ours asks for anything."""
        if not finalizers.is_finalizing(kind.watch, obj) or kind.resource is None:
            self._queue.done(uid_of(obj), ok=True)
            return
        request = request_for_one(kind.watch, obj, self._snapshot([obj]), self._settings.run_timeout, finalizing=True)
        result = self._runner.run(request)
        outcome = outcomes(result, [uid_of(obj)])[uid_of(obj)]
        self._log_run(kind, [obj], result)
        if outcome.ok:
            try:
                finalizers.remove_finalizer(self._api, kind.resource, kind.watch, obj)
            except (ApiError, ApiConnectionError) as error:
                outcome = JobOutcome(False, f"the finalizer could not be taken off: {error}")
        self._conclude(kind, obj, outcome, result)

    def _run(self, kind: _Kind, objs: Sequence[Object]) -> None:
        timeout, snapshot, info = self._settings.run_timeout, self._snapshot(objs), self._cluster_info.snapshot()
        if len(objs) == 1 and not kind.watch.long_lived:
            request = request_for_one(kind.watch, objs[0], snapshot, timeout, cluster_info=info)
        else:
            request = request_for_many(kind.watch, objs, snapshot, timeout, cluster_info=info)
        left = {uid_of(obj): obj for obj in objs}
        results = self._runner.results(request)
        try:
            for result in results:
                came_to = outcomes(result, list(left), shared=len(objs) > 1)
                told = [left.pop(uid) for uid in came_to]
                self._log_run(kind, told, result)
                self._catch_up(came_to.values())
                self._take_back(kind, told, came_to, result)
        finally:
            for _ in results:  # whatever went wrong here: the run still writes for those that it has not told of
                pass

    def _take_back(
        self, kind: _Kind, objs: Sequence[Object], came_to: Mapping[str, JobOutcome], result: RunResult
    ) -> None:
        for obj in objs:
            outcome = came_to[uid_of(obj)]
            if kind.watch.manage_status and result.ending is not RunOutcome.CANCELLED:
                self._manage_status(kind, obj, outcome, result.stats)
            self._conclude(kind, obj, outcome, result)

    def _snapshot(self, objs: Sequence[Object]) -> dict[str, dict[str, list[Object]]]:
        return {
            uid_of(obj): {
                name: [owned for informer in informers for owned in informer.store.owned(uid_of(obj))]
                for name, informers in self._owned.items()
            }
            for obj in objs
        }

    def _catch_up(self, came_to: Collection[JobOutcome]) -> None:
        """Wait until the watches show what the run wrote: the next run must not see the state before it."""
        wrote = frozenset().union(*(outcome.wrote for outcome in came_to))
        if not self._stopping.is_set() and not self._seen.wait_for(wrote, _CATCH_UP):
            _LOG.warning("the watch did not show a run's writes within %s", format_seconds(_CATCH_UP))

    def _manage_status(self, kind: _Kind, obj: Object, outcome: JobOutcome, stats: Mapping[str, int]) -> None:
        if kind.resource is None:
            return
        try:
            write_conditions(self._api, kind.resource, obj, outcome, stats)
        except (ApiError, ApiConnectionError) as error:
            _LOG.warning("%s %s: its conditions could not be written: %s", kind.watch.gvk, title(obj), error)

    def _conclude(self, kind: _Kind, obj: Object, outcome: JobOutcome, result: RunResult | None = None) -> None:
        """Give a job back to the queue; a failure is said in the log and in an Event on the job."""
        uid = uid_of(obj)
        if result is not None and result.ending is RunOutcome.CANCELLED:
            self._queue.done(uid, ok=True)
            return
        again = _soonest(outcome.requeue_after, self._period(kind, obj)) if outcome.ok else None
        self._metrics.reconciled(target_name(kind.watch), ok=outcome.ok)
        delay = self._queue.done(uid, ok=outcome.ok, again_after=again, wrote=outcome.wrote, alone=not outcome.told)
        for warning in outcome.warnings:
            if self._warned.is_new((uid, warning)):
                _LOG.warning("%s %s: %s", kind.watch.gvk, title(obj), warning)
        if outcome.ok:
            return
        when = "" if delay is None else f"; trying again in {format_seconds(delay)}"
        _LOG.error("%s %s: reconcile failed: %s%s", kind.watch.gvk, title(obj), outcome.message, when)
        self._recorder.warn(obj, "ReconcileFailed", outcome.message)

    def _period(self, kind: _Kind, obj: Object) -> float | None:
        try:
            return period_of(kind.watch, obj, self._settings.reconcile_period)
        except ValueError as error:
            _LOG.warning("%s %s: its reconcile-period annotation: %s", kind.watch.gvk, title(obj), error)
            return kind.watch.reconcile_period or self._settings.reconcile_period or None

    def _log_run(self, kind: _Kind, objs: Sequence[Object], result: RunResult) -> None:
        if not result.is_partial:
            self._metrics.ran(target_name(kind.watch), result.seconds)
        who = title(objs[0]) if len(objs) == 1 else f"{len(objs)} objects"
        verdict = "ok" if result.ok else "failed" if result.ending is RunOutcome.COMPLETED else result.ending
        counts = ", ".join(f"{count} {name}" for name, count in result.stats.items() if count) or "no tasks"
        # A run that found nothing to do is the rule, and no news.
        level = logging.INFO if result.stats.get("changed") or not result.ok else logging.DEBUG
        spent = format_seconds(result.seconds)
        _LOG.log(level, "%s %s: %s in %s (%s)", kind.watch.gvk, who, verdict, spent, counts)
        if result.output:
            # A failed task has said why; where a run broke off, only what it printed can.
            broke_off = result.ending in (RunOutcome.CRASHED, RunOutcome.TIMED_OUT)
            level = logging.WARNING if broke_off else logging.DEBUG
            _LOG.log(level, "the end of what it printed:\n%s", result.output[-_OUTPUT_SHOWN:].rstrip())


def _follows(watch: Watch, kind: str) -> bool:
    """Whether changes of owned objects of a `kind` are a reason to reconcile what `watch` is for.

    `watchDependentResources` does not decide it: that is about the watches that ansible-operator sets up by
    itself, which do not see a pod's status. What carries our label is watched here in any case.
    """
    group, version = _OWNED[kind][0].prefix.rpartition("/")[::2]
    return GVK(group.removeprefix("/apis/") if group != "/api" else "", version, kind) not in watch.blacklist


def _soonest(*delays: float | None) -> float | None:
    return min((delay for delay in delays if delay is not None), default=None)
