"""Stores the common part of a large job's environment in one ConfigMap instead of in every pod.

The environment of every process lists all processes, so the pods of n replicas contain n * n names. For 1,000 replicas
these are 60 MB in etcd, which holds 2 GB, and most of the cost of creating the pods. The values differ only at their
end, which has the process's own type and index. So the pod takes the common prefix from a ConfigMap and appends its own
end with Kubernetes' notation ``$(NAME)``; the process gets the same value as before.

Pure. The module does not interpret variables: it compares the values for the first and the last replica of each type.
A pod whose value does not start with the common prefix gets its whole value as usual.
"""

from __future__ import annotations

import hashlib
import os.path
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import for_replica
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Cluster, Environment
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion

KIND = "ConfigMap"
FROM_REPLICAS = 50
"""Number of replicas from which the ConfigMap is used. Pods of smaller jobs contain the whole environment, which is
easier to read and costs little."""
SHORTEST = 1024
"""Minimal length of a common prefix, in characters."""
LARGEST = 1_000_000
"""Bytes of all common prefixes together. A ConfigMap holds 1 MiB."""
PREFIX = "DLJOB_SHARED_"
"""Prefix of the name of the variable that holds a common prefix."""


@dataclass(frozen=True)
class Shared:
    """The common prefixes by variable, and the ConfigMap that holds them, whose name is derived from them."""

    config_map: str
    prefixes: Mapping[str, str]
    digest: str


def may_share(job: DLJob) -> bool:
    """Whether a job of this size may own such a ConfigMap."""
    return job.total >= FROM_REPLICAS


def due(
    job: DLJob, environment: Environment, cluster: Cluster, observed: Observed, starts: bool
) -> tuple[Shared | None, tuple[Mapping[str, Any], ...]]:
    """The shared environment of new pods, and the ConfigMap to create for them or for pods that lack theirs."""
    missing = lost(observed)
    if not starts and not missing:
        return None, ()
    shared = shared_by(job, environment, cluster)
    if (
        shared is None
        or (KIND, shared.config_map) in observed.owned_objects
        or not (starts or shared.config_map in missing)
    ):
        return shared, ()
    return shared, (_config_map(job, shared),)


def shared_by(job: DLJob, environment: Environment, cluster: Cluster) -> Shared | None:
    """The shared environment of the replicas of ``job``; ``None`` where a ConfigMap is not worthwhile."""
    if not may_share(job):
        return None
    found = [environment(for_replica(cluster, *task)) for task in _outermost(cluster)]
    # a comparison by characters is intended
    common = {name: os.path.commonprefix([_text(one, name) for one in found]) for name in found[0]}  # noqa: RUF071
    # Kubernetes expands $(NAME) in values of the pod spec, but not in values from a ConfigMap
    prefixes = {name: text for name, text in common.items() if len(text) >= SHORTEST and "$" not in text}
    if not prefixes or sum(len(text.encode()) for text in prefixes.values()) > LARGEST:
        return None
    # the name has a hash of the content, so that other content does not change the ConfigMap of running pods
    content = "\0".join(f"{name}={text}" for name, text in sorted(prefixes.items()))
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return Shared(f"{naming.service_name(job)}-{digest[:10]}", prefixes, digest)


def _text(environment: Mapping[str, Any], name: str) -> str:
    """The text of a variable; "" where it has none, or has a ``valueFrom``."""
    text = environment.get(name)
    return text if isinstance(text, str) else ""


def _outermost(cluster: Cluster) -> Iterator[tuple[str, int]]:
    """Type and index of the first and the last replica of each type. Their indices start with different digits."""
    for type_, members in cluster["replicas"].items():
        yield from ((type_, index) for index in sorted({0, len(members) - 1}) if members)


def lost(observed: Observed) -> frozenset[str]:
    """Missing ConfigMaps that pods refer to. Without them, the kubelet cannot restart the pods' containers."""
    return frozenset(p.shared for p in observed.pods if p.shared and (KIND, p.shared) not in observed.owned_objects)


def _config_map(job: DLJob, shared: Shared) -> Mapping[str, Any]:
    metadata = owned_objects.metadata(job, shared.config_map)
    metadata["annotations"] = {c.ANNOTATION_SPEC_HASH: shared.digest}
    manifest = {"apiVersion": "v1", "kind": KIND, "metadata": metadata, "data": dict(shared.prefixes)}
    return {**manifest, "immutable": True}  # so that the kubelet need not watch it


def surplus(job: DLJob, observed: Observed) -> tuple[Deletion, ...]:
    """The ConfigMaps that no pod uses; none while pods are missing, because a new pod may use any of them."""
    if len(observed.pods) < job.total:
        return ()
    in_use = {p.shared for p in observed.pods}
    return tuple(d for d in deletions(observed) if d.name not in in_use)


def deletions(observed: Observed) -> tuple[Deletion, ...]:
    """Deletions of all these ConfigMaps. Those of hooks have a lifetime, or (of earlier releases) no hash."""
    return tuple(
        Deletion(kind, name, found.uid)
        for (kind, name), found in observed.owned_objects.items()
        if kind == KIND and found.hash and not found.lifetime
    )


def variables(
    environment: Mapping[str, Any], taken: Collection[object], shared: Shared | None
) -> Iterator[dict[str, Any]]:
    """A container's ``env`` entries for ``environment``, without the names that the template has ``taken``."""
    prefixes = shared.prefixes if shared else {}
    for name, text in environment.items():
        if name in taken:
            continue
        if not isinstance(text, str) and isinstance(text, Mapping):
            yield {"name": name, "valueFrom": dict(text)}
            continue
        prefix = prefixes.get(name)
        if shared is None or not prefix or not text.startswith(prefix):
            yield {"name": name, "value": text}
            continue
        source = {"configMapKeyRef": {"name": shared.config_map, "key": name}}
        yield {"name": PREFIX + name, "valueFrom": source}
        yield {"name": name, "value": f"$({PREFIX}{name}){text[len(prefix) :]}"}
