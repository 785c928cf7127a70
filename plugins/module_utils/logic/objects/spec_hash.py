"""The spec hash: it distinguishes a pod of an older spec from a current one.

The pods of a replica type share it, those of a group of replicas, which have a template of their own, as well. So an
edit of one template replaces its pods only, and neither does a new size of a group replace more than the replicas that
get another template.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    RESTART_ALWAYS,
    RESTART_ON_FAILURE,
    RESTART_SCOPE_JOB,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, PodTemplate, ReplicaGroup


@dataclass(frozen=True, slots=True)
class TypeHashes:
    """The spec hashes of one replica type."""

    own: str
    """Of the replicas with the replica spec's own template."""
    groups: tuple[tuple[str, int, str], ...] = ()
    """Of the groups of replicas: the name, the index after the last replica, and the hash."""

    def of(self, index: int) -> str:
        return next((value for _, end, value in self.groups if index < end), self.own)


@dataclass(frozen=True, slots=True)
class SpecHashes:
    """The spec hashes of a job's pods."""

    by_type: Mapping[str, TypeHashes]
    """By lower-case replica type."""
    attempt: int = 0
    """The attempt of the job, which is a part of the hashes from the first restart by a rule on
    (:mod:`..plan.policies.restart_job`)."""

    def of(self, type_: str, index: int) -> str | None:
        """The hash of a replica's pod, ``None`` where the job has no such type."""
        hashes = self.by_type.get(type_.lower())
        if hashes is None:
            return None
        return f"{hashes.of(index)}-{self.attempt}" if self.attempt else hashes.of(index)

    def of_attempt(self, attempt: int) -> SpecHashes:
        return dataclasses.replace(self, attempt=attempt)


def spec_hashes(job: DLJob) -> SpecHashes:
    """The hashes of all pods of ``job``."""

    def of_type(group: ReplicaGroup) -> TypeHashes:
        groups = tuple((one.group, one.indexes.stop, spec_hash(job, group, one)) for one in group.groups)
        return TypeHashes(spec_hash(job, group), groups)

    return SpecHashes({group.type.lower(): of_type(group) for group in job.groups})


def fingerprint(job: DLJob, hashes: SpecHashes) -> str:
    """What identifies the spec of the whole job: the hashes, and which replicas have which.

    A template that no replica has is no part of it, since its edit changes no pod. The own template of a type whose
    number may change by itself is one even if all replicas are in groups: scaling is no edit.
    """
    parts: list[str] = []
    for group in sorted(job.groups, key=lambda group: group.type):
        of_type = hashes.by_type[group.type.lower()]
        is_scaled = group.resizable or group.type == job.elastic_type
        if not group.groups or is_scaled or group.replicas > group.grouped:
            parts.append(f"{group.type}={of_type.own};")
        sizes = {one.group: len(one.indexes) for one in group.groups}
        parts += (f"{group.type}/{name}<{end}={value};" for name, end, value in of_type.groups if sizes[name])
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def spec_hash(job: DLJob, group: ReplicaGroup, template: PodTemplate | None = None) -> str:
    """The spec hash of the pods of ``group`` that have its own template, or one of a group of replicas; 16 characters.

    It covers the user's template, the size and ports of all groups, and the other fields of the spec from which the
    environment is computed, which every process reads when it starts. Of what the operator adds it covers only a
    container that the template may lack and the pod hook supplies, by its name and image. So a new release of the
    operator leaves running pods alone, and a change of the number of replicas restarts all of them, because a
    parameter-server cluster cannot learn of the change in another way.
    """
    source: dict[str, Any] = {
        "template": template.template if template else group.template,
        "mode": job.mode,
        "runtime_id": job.runtime_id,  # part of the DNS names of the replicas
        # the other replicas do not know the members of an elastic type, or learn of them, so that its number may change
        "cluster": [
            [g.type, None if g.resizable or g.type == job.elastic_type else g.replicas, g.port] for g in job.groups
        ],
    }
    if job.run_policy.restart_scope == RESTART_SCOPE_JOB:  # the kubelet then does not restart containers in place
        source["restart_scope"] = True
    elif job.run_policy.failure_rules and group.restart_policy in (RESTART_ON_FAILURE, RESTART_ALWAYS):
        source["failure_policy"] = True  # nor then: its restarts would bypass the rules
    if template and template.group:
        source["group"] = template.group  # a label of the pods
    if group.is_completed:
        source["standard"] = True  # the same container may run its own program or the pod hook's
    if job.options:  # only if there are any, so that pods without options keep their hash
        source["options"] = job.options
    text = json.dumps(source, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
