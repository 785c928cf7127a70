"""Reads a job and what is around it, with the rights of the user: few requests for a job that runs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from dljob import decoding
from dljob.api import Api, pages
from dljob.around import Around, pod_selectors
from dljob.around import read as read_around
from dljob.errors import ApiError
from dljob.kinds import Resource
from dljob.view import QUEUE_LABEL
from dljob.why.facts import Facts
from dljob.why.model import Object, Snapshot, Unread

MOST_PAGES = 20
MOST_CLAIMS = 20
OPERATORS = ("dljob-operator", "training-operator", "mpi-operator")
"""Names of the Deployments that run such jobs."""
LEASES = ("dljob-operator", "1ca428e5.training-operator.kubeflow.org", "mpi-operator")
GANGS = (("scheduling.volcano.sh", "v1beta1"), ("scheduling.x-k8s.io", "v1alpha1"), ("scheduling.k8s.io", "v1beta1"))
KUEUE = "kueue.x-k8s.io"
KUEUE_VERSIONS = ("v1beta2", "v1beta1")
VISIBILITY = "visibility.kueue.x-k8s.io"
_REPLACEABLE = ("pending_workloads",)
_ABSENT = 404
_NO_LOGIN = 401


def snapshot(api: Api, job: Resource, now: datetime, around: Around | None = None) -> Snapshot:
    """All that :func:`dljob.why.explain` needs of the job, as it was just read. Raises DljobError.

    ``around`` is what has been read of it already.
    """
    return _Reader(api).read(around or read_around(api, job), now)


class _Reader:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._unread: list[Unread] = []

    def read(self, around: Around, now: datetime) -> Snapshot:
        job, pods = around.job, around.pods
        metadata = job["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        core = f"/api/v1/namespaces/{namespace}"
        for what, error in around.refused.items():
            self._refused(what, f"list {what}", error)
        services = [self._list("services", f"{core}/services", labelSelector=one) for one in pod_selectors(job)]
        read: dict[str, Any] = {
            "pods": pods,
            "events": around.namespace_events,
            "services": tuple({one["metadata"]["uid"]: one for found in services for one in found}.values()),
        }
        facts = Facts(Snapshot(job, now, **read))
        if facts.is_settled:
            return Snapshot(job, now, **read, unread=tuple(self._unread))
        read["nodes"] = self._list("nodes", "/api/v1/nodes")
        read["quotas"] = self._list("quotas", f"{core}/resourcequotas", "resourcequotas")
        read["limit_ranges"] = self._list("limit_ranges", f"{core}/limitranges", "limitranges")
        read["claims"] = tuple(self._claims(core, pods))
        read["pod_groups"] = tuple(self._groups(namespace, name))
        read["leases"] = self._named("leases", "/apis/coordination.k8s.io/v1/leases", LEASES)
        read["deployments"] = self._named("deployments", "/apis/apps/v1/deployments", (*OPERATORS, "coredns"))
        if facts.unschedulable:
            running = "status.phase!=Succeeded,status.phase!=Failed"
            read["neighbours"] = self._list(
                "neighbours", "/api/v1/pods", "pods of all namespaces", fieldSelector=running
            )
        if queue := (metadata.get("labels") or {}).get(QUEUE_LABEL):
            read.update(self._kueue(namespace, queue))
        return Snapshot(job, now, **read, unread=tuple(self._unread))

    def _kueue(self, namespace: str, queue: str) -> dict[str, Any]:
        for version in KUEUE_VERSIONS:
            base = f"/apis/{KUEUE}/{version}"
            local = self._one("local_queues", f"{base}/namespaces/{namespace}/localqueues/{queue}", "get localqueues")
            workloads = self._list("workloads", f"{base}/namespaces/{namespace}/workloads")
            if not local and not workloads:
                continue
            of_cluster = local[0]["spec"].get("clusterQueue", "") if local else ""
            path = f"/apis/{VISIBILITY}/{version}/namespaces/{namespace}/localqueues/{queue}/pendingworkloads"
            return {
                "local_queues": local,
                "workloads": workloads,
                "cluster_queues": self._one("cluster_queues", f"{base}/clusterqueues/{of_cluster}", "get clusterqueues")
                if of_cluster
                else (),
                "pending_workloads": self._list("pending_workloads", path),
            }
        return {}

    def _groups(self, namespace: str, name: str) -> Iterator[Object]:
        for group, version in GANGS:
            path = f"/apis/{group}/{version}/namespaces/{namespace}/podgroups/{name}"
            yield from self._one("pod_groups", path, f"get podgroups.{group}")

    def _claims(self, core: str, pods: tuple[Object, ...]) -> Iterator[Object]:
        names = {
            volume["persistentVolumeClaim"]["claimName"]: None
            for pod in pods
            for volume in pod["spec"].get("volumes") or ()
            if volume.get("persistentVolumeClaim")
        }
        for name in list(names)[:MOST_CLAIMS]:
            yield from self._one("claims", f"{core}/persistentvolumeclaims/{name}", "get persistentvolumeclaims")

    def _named(self, what: str, path: str, names: tuple[str, ...]) -> tuple[Object, ...]:
        """Of all namespaces, since an operator may be in any."""
        return tuple(one for name in names for one in self._list(what, path, fieldSelector=f"metadata.name={name}"))

    def _one(self, what: str, path: str, right: str) -> tuple[Object, ...]:
        try:
            return (self._api.get(path),)
        except ApiError as error:
            self._refused(what, right, error)
            return ()

    def _list(self, what: str, path: str, resource: str = "", **query: str) -> tuple[Object, ...]:
        found: list[Object] = []
        try:
            for page in islice(pages(self._api, path, query), MOST_PAGES):
                found += decoding.items(page)
        except ApiError as error:
            self._refused(what, f"list {resource or what.replace('_', '')}", error)
        return tuple(found)

    def _refused(self, what: str, right: str, error: ApiError) -> None:
        if error.status == _NO_LOGIN:
            raise error
        one = Unread(what, right)
        if error.status != _ABSENT and what not in _REPLACEABLE and one not in self._unread:
            self._unread.append(one)
