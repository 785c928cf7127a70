"""Delete the objects of deleted jobs that Kubernetes' garbage collector has missed.

The garbage collector follows jobs by a watch. While that is interrupted, as by a restart of the API server, the
deletion of a job and the creation of another one of its name reach it as one update: it takes the deleted job for
present until it starts again, and the job's pods keep their GPUs. `make chaos CHAOS="--seed 3 --faults 40"` shows it.

The cache only hints at such objects. Before each deletion the API server is asked for the job, and the deletion has the
object's UID as its precondition.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.cache.predicates import uid_of
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.engine.periodic import Periodic

_LOG = logging.getLogger(__name__)

INTERVAL = 30.0
"""Seconds between two passes. The garbage collector gets at least as long, and more while it makes progress."""
_MOST = 100
"""Jobs that one pass asks the API server for."""


@dataclass(frozen=True)
class DeletedJob:
    """A job that objects refer to, and that the cache does not have."""

    api_resource: ApiResource
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class Orphan:
    """An object of such a job, which is not terminating."""

    job: DeletedJob
    api_resource: ApiResource
    obj: Object


class OrphanCollector:
    """Looks through `orphans` every `interval` seconds, on a thread of its own."""

    def __init__(self, api: KubeApi, orphans: Callable[[], Iterable[Orphan]], interval: float = INTERVAL) -> None:
        self._api = api
        self._orphans = orphans
        self._before: dict[DeletedJob, frozenset[str]] = {}
        self._asked: dict[DeletedJob, int] = {}  # the pass that last asked for a job that is stuck
        self._passes = 0
        self._periodic = Periodic("orphans", self.collect, interval)

    def start(self) -> None:
        self._periodic.start()

    def stop(self) -> None:
        """Request the end of the thread and return immediately."""
        self._periodic.stop()

    def collect(self) -> None:
        """Delete the objects of each deleted job of which no object has gone or come since the last pass."""
        found: dict[DeletedJob, list[Orphan]] = {}
        for orphan in self._orphans():
            found.setdefault(orphan.job, []).append(orphan)
        present = {job: frozenset(uid_of(orphan.obj) for orphan in orphans) for job, orphans in found.items()}
        stuck = [job for job, uids in present.items() if self._before.get(job) == uids]
        self._before = present
        self._passes += 1
        self._asked = {job: self._asked.get(job, 0) for job in stuck}
        # jobs that the API server still has must not keep the others from their turn
        for job in sorted(stuck, key=self._asked.__getitem__)[:_MOST]:
            if self._periodic.is_stopping:
                return
            self._asked[job] = self._passes
            try:
                if self._is_gone(job):
                    self._delete(job, found[job])
            except (ApiError, ApiConnectionError) as error:
                # the next pass tries again
                _LOG.warning("cannot delete what is left of a deleted job", extra=_fields(job, error=error))

    def _is_gone(self, job: DeletedJob) -> bool:
        """Whether the API server has no such job. A list, because a GET of a kind that is not served is a 404 too."""
        query = {"fieldSelector": f"metadata.name={job.name}"}
        listed = self._api.list_objects(job.api_resource.collection(job.namespace), query)
        return all(uid_of(item) != job.uid for item in listed["items"])

    def _delete(self, job: DeletedJob, orphans: Sequence[Orphan]) -> None:
        for orphan in orphans:
            metadata = orphan.obj["metadata"]
            path = orphan.api_resource.item(metadata["namespace"], metadata["name"])
            self._api.delete(path, metadata["uid"])
        text = "deleted what the garbage collector has left of a deleted job"
        _LOG.warning(text, extra=_fields(job, objects=len(orphans)))


def _fields(job: DeletedJob, **more: object) -> dict[str, object]:
    return logs.fields(resource=job.api_resource.plural, namespace=job.namespace, name=job.name, uid=job.uid, **more)
