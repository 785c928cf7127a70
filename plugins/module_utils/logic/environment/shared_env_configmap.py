"""What all processes of a large job read alike, kept once in a ConfigMap instead of in every pod.

A cluster's description names every process, and every process gets it: the pods of n replicas carry n * n names. Of
1,000 replicas that is 60 MB in etcd, which holds 2 GB, and most of what making the pods costs. Only the end of such a
text differs, the process' own place. So the pod takes the beginning from a ConfigMap and adds its own end, in
Kubernetes' own notation ``$(NAME)``; the process finds the same text as ever in its environment.

Pure. It knows no variable's meaning: it compares what an environment gives to the first and to the last replica of
each type, and whatever else does not begin that way is written out as usual.
"""

from __future__ import annotations

import hashlib
import os.path
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import auxiliary_objects, naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.cluster_spec import Cluster, for_replica
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Environment
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Deletion, Observed

KIND = "ConfigMap"
FROM_REPLICAS = 50
"""Below, a pod says all of it itself: what is lost is small, and what a person reads in the pod is whole."""
SHORTEST = 1024
"""Characters of a beginning that is worth it."""
LARGEST = 1_000_000
"""Bytes of all beginnings together: a ConfigMap holds 1 MiB."""
PREFIX = "DLJOB_SHARED_"
"""Before the name of the variable whose beginning it is."""


@dataclass(frozen=True)
class Shared:
    """By variable the beginning of its text, and the name of the ConfigMap that has them, which is made from them."""

    config_map: str
    beginnings: Mapping[str, str]
    digest: str


def may_share(job: DLJob) -> bool:
    """Whether a job of this size may own such a ConfigMap."""
    return job.total >= FROM_REPLICAS


def due(
    job: DLJob, environment: Environment, cluster: Cluster, observed: Observed, starts: bool
) -> tuple[Shared | None, tuple[Mapping[str, Any], ...]]:
    """What pods that start now read alike, and the ConfigMap to be made for them or for those that lost theirs."""
    needy = lost(observed)
    if not starts and not needy:
        return None, ()
    shared = shared_by(job, environment, cluster)
    if (
        shared is None
        or (KIND, shared.config_map) in observed.owned_objects
        or not (starts or shared.config_map in needy)
    ):
        return shared, ()
    return shared, (_config_map(job, shared),)


def shared_by(job: DLJob, environment: Environment, cluster: Cluster) -> Shared | None:
    """What the replicas of ``job`` read alike; ``None`` where that is not worth an object of its own."""
    if not may_share(job):
        return None
    seen = [environment(for_replica(cluster, *task)) for task in _outermost(cluster)]
    # character by character is what is meant
    common = {name: os.path.commonprefix([one.get(name, "") for one in seen]) for name in seen[0]}  # noqa: RUF071
    # Kubernetes reads $ in a variable that it is given, and not in what it takes from a ConfigMap
    beginnings = {name: text for name, text in common.items() if len(text) >= SHORTEST and "$" not in text}
    if not beginnings or sum(len(text.encode()) for text in beginnings.values()) > LARGEST:
        return None
    # named by what it says: whoever says something else leaves alone what running pods refer to
    said = "\0".join(f"{name}={text}" for name, text in sorted(beginnings.items()))
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    return Shared(f"{naming.service_name(job)}-{digest[:10]}", beginnings, digest)


def _outermost(cluster: Cluster) -> Iterator[tuple[str, int]]:
    """Type and index of the first and the last replica of each type: their indices begin with different digits."""
    for type_, members in cluster["replicas"].items():
        yield from ((type_, index) for index in sorted({0, len(members) - 1}) if members)


def lost(observed: Observed) -> frozenset[str]:
    """ConfigMaps that pods refer to and that somebody has deleted: a container of theirs could not start again."""
    return frozenset(p.shared for p in observed.pods if p.shared and (KIND, p.shared) not in observed.owned_objects)


def _config_map(job: DLJob, shared: Shared) -> Mapping[str, Any]:
    metadata = auxiliary_objects.metadata(job, shared.config_map)
    metadata["annotations"] = {c.ANNOTATION_SPEC_HASH: shared.digest}
    manifest = {"apiVersion": "v1", "kind": KIND, "metadata": metadata, "data": dict(shared.beginnings)}
    return {**manifest, "immutable": True}  # so that the kubelet need not watch it


def surplus(job: DLJob, observed: Observed) -> tuple[Deletion, ...]:
    """Those to which no pod refers any more. A replica that has no pod may get one that does."""
    if len(observed.pods) < job.total:
        return ()
    in_use = {p.shared for p in observed.pods}
    return tuple(d for d in deletions(observed) if d.name not in in_use)


def deletions(observed: Observed) -> tuple[Deletion, ...]:
    """All of them. A role's program, the other kind of ConfigMap, does not say what it was made from."""
    return tuple(
        Deletion(kind, name, h.uid) for (kind, name), h in observed.owned_objects.items() if kind == KIND and h.hash
    )


def variables(
    environment: Mapping[str, str], taken: Collection[object], shared: Shared | None
) -> Iterator[dict[str, Any]]:
    """A container's ``env`` entries for ``environment``, without the names that it has ``taken`` itself."""
    beginnings = shared.beginnings if shared else {}
    for name, text in environment.items():
        if name in taken:
            continue
        beginning = beginnings.get(name)
        if shared is None or not beginning or not text.startswith(beginning):
            yield {"name": name, "value": text}
            continue
        source = {"configMapKeyRef": {"name": shared.config_map, "key": name}}
        yield {"name": PREFIX + name, "valueFrom": source}
        yield {"name": name, "value": f"$({PREFIX}{name}){text[len(beginning) :]}"}
