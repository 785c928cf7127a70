"""What a reconcile reads: from the engine's cache where there is one, from the API server otherwise."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import cluster_info, paths
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner, is_owned_by, labels
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import DELETED_PODS
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS, OwnedKind
from ansible_collections.dljob.operator.plugins.module_utils.shared.paging import pages
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import REPORTED
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import ClusterInfo, RequiredInfo
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    LABEL_JOB_NAME_V1,
    LABEL_JOB_UID,
    LABEL_REPLICA_TYPE,
)

Resource = Mapping[str, Any]
PAGE = 500
"""Objects of one response, so that the memory does not grow with the number of replicas."""


class Reader:
    """Reads from ``owned`` and ``info``, which an engine took from its cache, and what they lack from the API server.

    Their shapes are those of :mod:`..shared.cache_snapshot`; ``None`` stands for no cache.
    """

    def __init__(
        self,
        client: RestClient,
        owned: Mapping[str, cache_snapshot.Owned] | None = None,
        info: cache_snapshot.Published | None = None,
    ) -> None:
        self._client = client
        self._owned = owned
        self._info = info

    @property
    def has_watch(self) -> bool:
        """Whether an engine watches the owned objects, so that a change of one triggers the next reconcile."""
        return self._owned is not None

    def owned_objects(self, namespace: str, uid: str, kinds: Collection[str]) -> dict[str, Sequence[Resource]]:
        """By the registry's name of the kind the objects that carry the job's uid. One request for
        each of ``kinds``, none with a cache."""
        if self._owned is not None and uid in self._owned:
            return {kind: self._owned[uid].get(kind, ()) for kind in kinds}
        query = {"labelSelector": f"{LABEL_JOB_UID}={uid}"}
        return {kind: self._list(OWNED_KINDS[kind], namespace, query) for kind in kinds}

    def deleted_pods(self, uid: str) -> Sequence[Resource] | None:
        """The pods of the job that an engine has seen go, as in :mod:`..shared.deleted_pods`; ``None`` without one."""
        return (self._owned or {}).get(uid, {}).get(DELETED_PODS)

    def reported_progress(self, uid: str) -> Resource:
        """What the program of the job has reported, as in :mod:`..shared.progress`; empty without an engine."""
        return next(iter((self._owned or {}).get(uid, {}).get(REPORTED, ())), {})

    def _list(self, kind: OwnedKind, namespace: str, query: Mapping[str, str]) -> Sequence[Resource]:
        try:
            listed = self._client.request("GET", paths.collection(kind.api_version, kind.kind, namespace), query=query)
        except ApiError as e:
            if e.status == 404 and kind.remedy:  # an error of the creation, which names what is missing
                return ()
            raise
        found: Sequence[Resource] = listed.get("items", ())
        return found

    def pods(self, owner: Owner) -> Iterator[Resource]:
        """The pods of the job ``owner`` that the API server has, and an engine's cache would have."""
        return (pod for pod in self._labelled("Pod", owner) if is_owned_by(pod, owner))

    def batch_jobs(self, owner: Owner) -> Iterator[Resource]:
        """The batch Jobs of the job ``owner``, likewise."""
        return (one for one in self._labelled("Job", owner) if is_owned_by(one, owner))

    def pods_of_type(self, owner: Owner, type_: str) -> Iterator[Resource]:
        """The pods with the label of this replica type, likewise, also those that a batch Job controls."""
        return self._labelled("Pod", owner, {LABEL_REPLICA_TYPE: type_.lower()})

    def pods_of_training_operator(self, owner: Owner, job: str) -> Iterator[Resource]:
        """The pods of the job ``owner``, of the name ``job``, that training-operator has created."""
        return (pod for pod in self._paged("Pod", owner, {LABEL_JOB_NAME_V1: job}) if is_owned_by(pod, owner))

    def _labelled(self, kind: str, owner: Owner, more: Mapping[str, str] | None = None) -> Iterator[Resource]:
        """The objects with the labels that this operator sets on those of the job ``owner``."""
        return self._paged(kind, owner, {**labels(owner.uid), **(more or {})})

    def _paged(self, kind: str, owner: Owner, selected: Mapping[str, str]) -> Iterator[Resource]:
        """The objects with these labels in the namespace of ``owner``."""
        path = paths.collection(OWNED_KINDS[kind].api_version, kind, owner.namespace)
        selector = ",".join(f"{key}={value}" for key, value in selected.items())
        read = pages(lambda query: self._client.request("GET", path, query=query), {"labelSelector": selector}, PAGE)
        return (one for page in read for one in page.get("items", ()))

    def has_spec(self, resource: Resource) -> bool:
        """Whether the API server has ``resource`` with the same spec. A list of one would take up to 0.1 s: the API
        server answers a list from its cache, and asks etcd only every 0.1 s how old that is."""
        known = resource["metadata"]
        try:
            found = self._client.request("GET", paths.object_path(resource))["metadata"]
        except ApiError as e:
            if e.status == 404:
                return False
            raise
        return bool(found["uid"] == known["uid"] and found.get("generation") == known.get("generation"))

    def cluster_info(self, required: RequiredInfo, settings: OperatorSettings) -> tuple[ClusterInfo, tuple[str, ...]]:
        """What the plan needs to know of the cluster, and what the operator may not read of it."""
        return cluster_info.read(self._client, required, settings, self._info)
