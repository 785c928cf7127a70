"""All informers of a controller, and the cache that they fill: jobs, the objects that they own, the cluster info."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ansible_collections.dljob.operator.plugins.module_utils.shared.batch_job_pods import labelled_job
from ansible_collections.dljob.operator.plugins.module_utils.shared.controller_reference import controller_of
from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import DELETED_PODS
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import LABEL_MANAGED_BY, MANAGER
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import (
    OF_EVERY_JOB,
    OWNED_KINDS,
    WORKLOAD,
    OwnedKind,
    cached_fields,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import REPORTED

from dljob_operator import logs
from dljob_operator.engine.cache import transforms
from dljob_operator.engine.cache.cluster_info import ClusterInfoWatcher
from dljob_operator.engine.cache.decoding import decoding_of
from dljob_operator.engine.cache.deleted_pods import DeletedPods
from dljob_operator.engine.cache.failed_pods import FailedPods
from dljob_operator.engine.cache.ignored_jobs import IgnoredJobs
from dljob_operator.engine.cache.informer import Informer, WatchSource
from dljob_operator.engine.cache.kind_index import KindIndex
from dljob_operator.engine.cache.predicates import (
    Change,
    custom_predicate,
    is_leaving,
    namespace_of,
    owned_predicate,
    owner_uid,
    uid_of,
    version_of,
)
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.controller_settings import LARGEST_SHARING, ControllerSettings
from dljob_operator.engine.discovery import ApiResource, find_api_resource
from dljob_operator.engine.events import EventRecorder
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.orphans import DeletedJob, Orphan
from dljob_operator.engine.progress.board import ProgressBoard
from dljob_operator.engine.progress.report import Report
from dljob_operator.engine.progress.reporter import PodIdentity, Reporter, has_ended, reporter_of
from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.resource_versions import ResourceVersionTracker, Written
from dljob_operator.engine.requests import CacheView, target_name
from dljob_operator.json_texts import JsonTexts
from dljob_operator.watches import GVK, Watch

_LOG = logging.getLogger(__name__)
_PER_PAGE = 50
"""Jobs, or objects that they own, in one response of a list. Tenants write both, and each may have 1.5 MB. One of many
short fields takes ten times that while the page is decoded (measured): 0.75 GB for a page, of the 1 GiB that `deploy/`
allows. A list of 10,000 pods is 200 requests then, whose own cost is small beside that of the pods in them."""
_POD, _BATCH_JOB = "Pod", "Job"  # the pods of a batch Job that runs a replica belong to that Job
MANAGED = f"{LABEL_MANAGED_BY}={MANAGER}"
_CACHE_TIMEOUT = 5.0  # seconds to wait until the cache has observed the writes of a run


class JobEvents(Protocol):
    """Takes the changes that matter for a job; each queue does."""

    def add(self, key: str, flow: Flow, *, cause: Written | None = ..., urgent: bool = ..., owned: int = ...) -> None:
        """The job `key` of `flow` changed, or an object that it owns; see `WorkQueue.add`."""
        ...

    def discard(self, key: str) -> None:
        """The job was deleted."""
        ...


@dataclass
class WatchedKind:
    """A watched kind: its watch entry, its API resource (None while it is not served) and its informers."""

    watch: Watch
    api_resource: ApiResource | None = None
    informers: list[Informer] = field(default_factory=list)

    def get(self, uid: str) -> Object | None:
        return next((obj for one in self.informers if (obj := one.store.get(uid)) is not None), None)

    def name_of(self, uid: str) -> tuple[str, str] | None:
        """The namespace and the name of a job, for which nothing is unpacked."""
        return next((name for one in self.informers if (name := one.store.name_of(uid)) is not None), None)


class InformerSet:
    """The informers of the kinds of `watches`, of what jobs own, and of the cluster info.

    Each relevant change is passed to `events` on the informer's thread, and each change of a job before that to
    `on_job` with its target's name. All methods but `start` may be called from any thread.
    """

    def __init__(
        self,
        watches: Sequence[Watch],
        api: KubeApi,
        settings: ControllerSettings,
        events: JobEvents,
        on_job: Callable[[str, Change], None] = lambda target, change: None,
    ) -> None:
        self._api = api
        self._settings = settings
        self._receivers = {target_name(watch): (events, on_job) for watch in watches}
        self._ignored = IgnoredJobs(EventRecorder(api))
        self._seen = ResourceVersionTracker()
        self._kinds_of = KindIndex[WatchedKind]()
        self._failed_pods = FailedPods()
        self._deleted_pods = DeletedPods() if settings.usage else None
        self.progress = ProgressBoard() if settings.progress else None
        self._stopping = threading.Event()
        self._kinds = {target_name(watch): self._kind(watch) for watch in watches}
        self._owned = {kind.name: self._owned_informers(kind) for kind in _owned_kinds(watches, settings)}
        self._cluster_info = ClusterInfoWatcher(api, settings.config_namespaces, self._cluster_info_changed)

    def redirect(self, watches: Iterable[Watch], events: JobEvents, on_job: Callable[[str, Change], None]) -> None:
        """Pass the changes of the jobs of some `watches` to others. Call it before `start`."""
        self._receivers |= {target_name(watch): (events, on_job) for watch in watches}

    # The informers' threads

    @property
    def informers(self) -> list[Informer]:
        """All of them: those of the jobs, of what jobs own, and of the cluster info."""
        custom = [informer for kind in self._kinds.values() for informer in kind.informers]
        owned = [informer for informers in self._owned.values() for informer in informers]
        return [*custom, *owned, *self._cluster_info.informers]

    def start(self) -> None:
        self._ignored.start()
        for informer in self.informers:
            informer.start()

    def wait_ready(self) -> tuple[list[GVK], list[GVK]]:
        """Wait until all informers have synced; return the kinds that are watched and the kinds that are not served."""
        for informer in self.informers:
            informer.has_synced.wait()
        missing = [kind.watch.gvk for kind in self._kinds.values() if any(i.missing_now for i in kind.informers)]
        return [kind.watch.gvk for kind in self._kinds.values() if kind.watch.gvk not in missing], missing

    def wait_filled(self, timeout: float = math.inf) -> bool:
        """Wait until a snapshot is complete; return whether it is, at the latest after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        owned = [informer for informers in self._owned.values() for informer in informers]
        for informer in (*owned, *self._cluster_info.informers):
            left = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
            if not informer.has_synced.wait(left):
                return False
        return all(informer.synced.is_set() or informer.source.optional for informer in owned)

    def problem(self) -> str:
        """Why an informer no longer watches, "" if all do."""
        return next(filter(None, (informer.problem() for informer in self.informers)), "")

    def not_ready(self) -> str:
        """Why the cache is not up to date, "" if it is."""
        return next(filter(None, (informer.not_ready() for informer in self.informers)), "")

    def begin_stop(self) -> None:
        """End all waiting for the cache, and the informers that have not synced; the others go on."""
        self._stopping.set()
        for informer in self.informers:
            if not informer.has_synced.is_set():
                informer.stop()

    def stop(self) -> None:
        """Request the end of all informers and return immediately."""
        self._ignored.stop()
        for informer in self.informers:
            informer.stop()

    def join(self) -> None:
        """Wait for the ends of the informers, for each at most a few seconds."""
        self._ignored.join(_CACHE_TIMEOUT)
        for informer in self.informers:
            informer.join(_CACHE_TIMEOUT)

    # The cache

    def kind(self, target: str) -> WatchedKind | None:
        """Return the kind with that target name."""
        return self._kinds.get(target)

    def find(self, uid: str) -> tuple[WatchedKind, Object] | None:
        """Return a job and its kind."""
        return next(((kind, obj) for kind in self._kinds_of.of(uid) if (obj := kind.get(uid)) is not None), None)

    def may_share(self, uid: str, namespace: str) -> bool:
        """Whether the job `uid` is small enough to share a run with others; see LARGEST_SHARING."""
        owned = sum(self._count(name, uid, namespace) for name in self._owned)
        owned += sum(one.store.count_labelled(uid, namespace) for one in self._owned.get(_POD, ()))
        if owned <= LARGEST_SHARING and self._count(_BATCH_JOB, uid, namespace):
            batch_jobs = self._owned_by(_BATCH_JOB, uid, namespace)
            owned += sum(self._count(_POD, uid_of(one), namespace) for one in batch_jobs)
        return owned <= LARGEST_SHARING

    def _count(self, name: str, owner: str, namespace: str) -> int:
        return sum(one.store.count(owner, namespace) for one in self._owned.get(name, ()))

    def reporter_of(self, pod: PodIdentity) -> Reporter | None:
        """Return what reports from that pod: it is a job's own, and neither has ended."""
        found = next(
            (one for informer in self._owned[_POD] if (one := informer.store.get(pod.uid)) is not None),
            None,
        )
        if found is None or namespace_of(found) != pod.namespace:
            return None
        for uid in self._jobs_of(found):
            job = self.find(uid)
            if job is not None and namespace_of(job[1]) == pod.namespace:
                return reporter_of(found, target_name(job[0].watch), job[1])
        return None

    def report(self, given: Reporter, report: Report) -> None:
        """Keep what a program has reported, and requeue its job when its status is due."""
        if self.progress is None or not self._kinds_of.of(given.job):
            return
        if self.progress.report(given, report):
            self._receivers[given.kind][0].add(given.job, Flow(given.kind, given.namespace))

    def report_lost(self, address: str) -> None:
        """A report from that address may have been lost, or for "" any one."""
        if self.progress is not None:
            self.progress.lost(address)

    def name_of(self, uid: str) -> str:
        """Return how users know a job, its UID if the cache lacks it."""
        for kind in self._kinds_of.of(uid):
            if (name := kind.name_of(uid)) is not None:
                return f"{kind.watch.gvk} {'/'.join(name)}"
        return uid

    def jobs(self) -> Iterator[tuple[str, Object]]:
        """Yield all jobs with their targets' names."""
        for name, kind in self._kinds.items():
            for informer in kind.informers:
                for obj in informer.store.all():
                    yield name, obj

    def orphans(self) -> Iterator[Orphan]:
        """Yield the owned objects whose job the cache lacks, of the kinds that are watched without a label selector.

        Other jobs than those of the selector have their objects here too.
        """
        kinds = [
            kind
            for kind in self._kinds.values()
            if not any(informer.source.selector for informer in kind.informers)
            and all(informer.synced.is_set() for informer in kind.informers)
        ]
        for owned, informers in self._owned.items():
            for informer in informers if kinds else ():
                for uid, namespace in informer.store.owners():
                    if all(kind.name_of(uid) is None for kind in self._kinds_of.of(uid)):
                        for obj in informer.store.owned(uid, namespace):
                            yield from _orphan(kinds, OWNED_KINDS[owned], obj)

    def view(self, resources: Sequence[Object]) -> CacheView:
        """Return what a run for the jobs `resources` gets of the cache."""
        owned = {}
        for obj in resources:
            uid, namespace = uid_of(obj), namespace_of(obj)
            found = owned[uid] = {name: self._owned_by(name, uid, namespace) for name in self._owned}
            batch_jobs = [uid_of(one) for one in found.get(_BATCH_JOB, ())]
            launched = (self._owned_by(_POD, one, namespace) for one in batch_jobs)
            joined = {uid, *batch_jobs}
            labelled = (one.store.labelled(uid, namespace, joined) for one in self._owned[_POD])
            failed = self._failed_pods.of(batch_jobs, namespace)
            if pods := [one for one in (*launched, *labelled, failed) if one]:
                found[_POD] = JsonTexts.joined(found[_POD], *pods)
            if self._deleted_pods is not None:
                for informer in self._owned[_POD]:
                    with informer.applying:  # a pod that was missing above has been noted by now
                        pass
                found[DELETED_PODS] = self._deleted_pods.of(uid, namespace)
            if self.progress is not None:
                found[REPORTED] = self.progress.of(uid)
        return CacheView(owned, self._cluster_info.snapshot())

    def _owned_by(self, name: str, uid: str, namespace: str) -> JsonTexts:
        """Return the objects of the kind `name` that `uid` controls in a namespace."""
        return JsonTexts.joined(*(one.store.owned(uid, namespace) for one in self._owned[name]))

    def _jobs_of(self, obj: Object) -> Iterator[str]:
        """Yield the UIDs of the jobs that an owned object may belong to: by its owner, a batch Job's owner, a label."""
        owner, job = owner_uid(obj), labelled_job(obj)
        if owner is not None:
            batch_jobs = (informer.store.get(owner) for informer in self._owned.get(_BATCH_JOB, ()))
            batch_job = next(filter(None, batch_jobs), None)
            yield (owner_uid(batch_job) if batch_job else None) or owner
        if job is not None:
            yield job

    def wait_for(self, wrote: Collection[Written]) -> None:
        """Wait until the cache has observed what a run wrote, so that the next run does not use older state."""
        if not self._stopping.is_set() and not self._seen.wait_for(wrote, _CACHE_TIMEOUT):
            _LOG.warning(
                "timed out waiting for the cache to observe our writes",
                extra=logs.fields(timeout_seconds=_CACHE_TIMEOUT),
            )

    # Construction

    def _kind(self, watch: Watch) -> WatchedKind:
        kind = WatchedKind(watch)
        gvk = watch.gvk
        missing = (
            f"the cluster has no {gvk.kind} in {gvk.api_version}: its CustomResourceDefinition is not "
            "installed; run 'kubectl apply --server-side -f crds/' or start with --install-crds"
        )

        def find() -> ApiResource | None:
            kind.api_resource = find_api_resource(self._api, gvk)
            return kind.api_resource

        for namespace in self._settings.namespaces or ("",):
            selector = ",".join(filter(None, (watch.selector, self._settings.selector)))
            source = WatchSource(
                *(str(gvk), find, transforms.custom, namespace, selector),
                missing=missing,
                from_tenants=True,
                page_size=_PER_PAGE,
            )
            kind.informers.append(
                Informer(
                    self._api,
                    source,
                    lambda change: self._custom_changed(kind, change),
                    lambda metadata: self._ignored.note(gvk, metadata),
                )
            )
        return kind

    def _owned_informers(self, kind: OwnedKind) -> list[Informer]:
        sources = [self._source_of(kind, namespace) for namespace in self._settings.namespaces or ("",)]
        api = self._api.decoding(decoding_of(cached_fields(kind, requests=self._settings.usage)))
        return [Informer(api, source, lambda change: self._owned_changed(kind, change)) for source in sources]

    def _source_of(self, kind: OwnedKind, namespace: str) -> WatchSource:
        fields = cached_fields(kind, requests=self._settings.usage)
        api_resource, transform = _resource_of(kind), transforms.owned(fields)
        if not kind.remedy:
            return WatchSource(
                *(api_resource.plural, lambda: api_resource, transform, namespace, MANAGED),
                page_size=_PER_PAGE,
            )
        name = f"{kind.plural}.{kind.group}"
        return WatchSource(
            *(name, lambda: find_api_resource(self._api, _gvk_of(kind)), transform, namespace, MANAGED),
            missing=f"the cluster has no {name}, and jobs wait for it: {kind.remedy}",
            optional=True,
            page_size=_PER_PAGE,
            without=f"; the operator does not see when a {kind.kind} is deleted or changed",
        )

    # Watch events (on the informers' threads)

    def _custom_changed(self, kind: WatchedKind, change: Change) -> None:
        self._note(change)
        events, on_job = self._receivers[target_name(kind.watch)]
        on_job(target_name(kind.watch), change)
        uid = uid_of(change.obj)
        (self._kinds_of.discard if change.new is None else self._kinds_of.add)(uid, kind)
        if self._deleted_pods is not None:
            self._count_deleted_pods(self._deleted_pods, change)
        if self.progress is not None and (change.new is None or has_ended(change.new)):
            self.progress.discard(uid)
        if change.new is None:
            events.discard(uid)
        elif custom_predicate(change):
            cause = (uid, version_of(change.new))
            # After a start all existing jobs seem new. A job with a status was reconciled before, so new jobs go first.
            reconciled_before = change.old is None and bool(change.new.get("status"))
            flow = flow_of(target_name(kind.watch), change.new)
            events.add(uid, flow, cause=cause, urgent=not reconciled_before)

    def _count_deleted_pods(self, gone: DeletedPods, change: Change) -> None:
        uid = uid_of(change.obj)
        if change.new is None:
            gone.job_deleted(uid, namespace_of(change.obj))
        else:
            gone.job_changed(uid, change.new)

    def _owned_changed(self, kind: OwnedKind, change: Change) -> None:
        self._note(change)
        if kind.name == _POD:
            self._failed_pods.pod_changed(change)
            if self._deleted_pods is not None and change.new is None:
                known = (uid for uid in dict.fromkeys(self._jobs_of(change.obj)) if self._kinds_of.of(uid))
                self._deleted_pods.pod_deleted(change.obj, known)
        elif kind.name == _BATCH_JOB and change.new is None:
            self._failed_pods.batch_job_gone(uid_of(change.obj), namespace_of(change.obj))
        if not owned_predicate(change):
            return
        # of a job that has lost the object too: somebody may have removed its owner reference
        found = (uid for obj in (change.old, change.new) if obj is not None for uid in self._jobs_of(obj))
        for uid in dict.fromkeys(found):
            self._owned_by_changed(uid, kind, change)

    def _owned_by_changed(self, owner: str, kind: OwnedKind, change: Change) -> None:
        for watched in self._kinds_of.of(owner):
            job, namespace = watched.name_of(owner), namespace_of(change.obj)
            # An owner reference from another namespace is forged.
            if job is not None and job[0] == namespace and _watches_owned(watched.watch, kind):
                version = None if change.new is None else version_of(change.new)
                owned = self._count(kind.name, owner, namespace)
                cause, flow = (uid_of(change.obj), version), Flow(target_name(watched.watch), namespace)
                self._receivers[flow.target][0].add(owner, flow, cause=cause, owned=owned)

    def _cluster_info_changed(self) -> None:
        """Requeue all unfinished jobs, because any of them may wait for this change.

        It is not tracked which jobs wait; a reconcile of another job writes nothing.
        """
        for target, obj in self.jobs():
            if not (obj.get("status") or {}).get("completionTime"):
                self._receivers[target][0].add(uid_of(obj), flow_of(target, obj))

    def _note(self, change: Change) -> None:
        obj = change.obj
        self._seen.note(uid_of(obj), version_of(obj), leaving=is_leaving(obj), gone=change.new is None)


def flow_of(target: str, resource: Object) -> Flow:
    """The flow of a job in the queue; a cluster-scoped object has the namespace ""."""
    return Flow(target, namespace_of(resource))


def _resource_of(kind: OwnedKind) -> ApiResource:
    return ApiResource(kind.prefix, kind.plural)


def _gvk_of(kind: OwnedKind) -> GVK:
    return GVK(kind.group, kind.api_version.rpartition("/")[2], kind.kind)


def _orphan(kinds: Iterable[WatchedKind], owned: OwnedKind, obj: Object) -> Iterator[Orphan]:
    """Yield the object, unless it is terminating or its job is of none of these kinds."""
    reference = controller_of(obj)
    if reference is None or is_leaving(obj):
        return
    group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    for kind in kinds:
        gvk = kind.watch.gvk
        if kind.api_resource is not None and (gvk.group, gvk.kind) == (group, reference.get("kind")):
            job = DeletedJob(kind.api_resource, namespace_of(obj), str(reference.get("name")), str(reference["uid"]))
            yield Orphan(job, _resource_of(owned), obj)
            return


def _owned_kinds(watches: Sequence[Watch], settings: ControllerSettings) -> list[OwnedKind]:
    """The kinds to watch: those of every job, those that roles declare in `owns`, the gang scheduler's and Kueue's."""
    declared = (name for watch in watches for name in watch.owns)
    gang = (settings.gang.owned_kind,) if settings.gang else ()
    names = dict.fromkeys((*OF_EVERY_JOB, *declared, *gang, *([WORKLOAD] if settings.kueue else ())))
    return [kind for name in names if (kind := OWNED_KINDS[name]).watched]


def _watches_owned(watch: Watch, kind: OwnedKind) -> bool:
    """Whether changes of owned objects of a `kind` requeue the jobs of `watch`.

    `watchDependentResources` does not matter here: it controls the watches of ansible-operator, which ignore the status
    of pods. The engine always watches objects with our label.
    """
    return _gvk_of(kind) not in watch.blacklist
