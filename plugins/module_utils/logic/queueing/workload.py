"""The Workload of a job: what the operator writes into it, and what it reads there.

A Workload asks a LocalQueue for the quota of a job. Kueue reserves the quota, admits the Workload and evicts it; the
operator says when the pods are ready, when they are gone after an eviction, and when the job has ended.

Source: the API ``kueue.x-k8s.io/v1beta2`` of Kueue 0.19.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.queueing import pod_sets
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping, maps
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import OWN_PREFIX
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS, WORKLOAD
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob

KIND = OWNED_KINDS[WORKLOAD]
ADMITTED, EVICTED, FINISHED = "Admitted", "Evicted", "Finished"
QUOTA_RESERVED, PODS_READY, REQUEUED = "QuotaReserved", "PodsReady", "Requeued"

ANNOTATION_PLACEMENT = f"{OWN_PREFIX}placement"
"""Annotation of a Workload: what an admission adds to the templates, see :mod:`.placement`."""
ANNOTATION_SUSPENDED = f"{OWN_PREFIX}suspended"
"""Annotation of a Workload that the operator, not an administrator, has deactivated: the user has suspended the job."""

_LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class Workload:
    """What a Workload says."""

    name: str
    uid: str
    version: str
    """Its resourceVersion."""
    hash: str
    """Of the request that it makes, see :attr:`QuotaRequest.hash`."""
    deleting: bool
    active: bool
    suspended: bool
    """Whether it is inactive because the user has suspended the job."""
    queue: str
    priority_class: str
    conditions: tuple[Mapping[str, Any], ...]
    admission: Mapping[str, Any]
    checks: tuple[Mapping[str, Any], ...]
    placement: str
    """The text of :data:`ANNOTATION_PLACEMENT`, "" for none."""

    def condition(self, type_: str) -> Mapping[str, Any]:
        """The condition of that type, empty where there is none."""
        return conditions.get_condition(self.conditions, type_) or {}

    def has(self, type_: str) -> bool:
        """Whether the condition of that type is True."""
        return conditions.is_condition_true(self.conditions, type_)

    @property
    def holds_quota(self) -> bool:
        return self.has(QUOTA_RESERVED) or bool(self.admission)

    @property
    def is_admitted(self) -> bool:
        """Whether the job may have pods."""
        return self.has(ADMITTED) and bool(self.admission) and self.active and not self.has(EVICTED)


def read(resource: Mapping[str, Any]) -> Workload:
    """A Workload from the API server or from an engine's cache."""
    metadata, spec, status = resource["metadata"], as_mapping(resource.get("spec")), as_mapping(resource.get("status"))
    annotations = as_mapping(metadata.get("annotations"))
    return Workload(
        name=metadata["name"],
        uid=str(metadata.get("uid") or ""),
        version=str(metadata.get("resourceVersion") or ""),
        hash=annotations.get(c.ANNOTATION_SPEC_HASH) or "",
        deleting=bool(metadata.get("deletionTimestamp")),
        active=spec.get("active") is not False,
        suspended=ANNOTATION_SUSPENDED in annotations,
        queue=spec.get("queueName") or "",
        priority_class=as_mapping(spec.get("priorityClassRef")).get("name") or "",
        conditions=tuple(maps(status.get("conditions"))),
        admission=as_mapping(status.get("admission")),
        checks=tuple(maps(status.get("admissionChecks"))),
        placement=annotations.get(ANNOTATION_PLACEMENT) or "",
    )


@dataclass(frozen=True)
class QuotaRequest:
    """What a job asks Kueue for, from its labels and its spec."""

    queue: str
    priority_class: str
    """Of Kueue's WorkloadPriorityClass, "" for none."""
    pod_priority_class: str
    """Of the first template that has one, which counts where there is no WorkloadPriorityClass."""
    time_limit: int | None
    """Seconds for which the job is admitted at most."""
    pod_sets: tuple[pod_sets.PodSet, ...]

    @functools.cached_property
    def hash(self) -> str:
        """Of what another quota is needed for: a Workload of another hash is replaced."""
        return owned_objects.content_hash([self.queue, self.time_limit, self.pod_sets])


def request(job: DLJob, labels: Mapping[str, Any], queue: str = "") -> QuotaRequest:
    """The request of a job with these ``labels``; ``queue`` is that of its Workload, for a job that names none."""
    sets = tuple(pod_sets.build(job))
    limit = str(labels.get(c.LABEL_KUEUE_TIME_LIMIT) or "")
    classes = (one["template"]["spec"].get("priorityClassName") for one in sets)
    return QuotaRequest(
        queue=str(labels.get(c.LABEL_KUEUE_QUEUE) or queue),
        priority_class=str(labels.get(c.LABEL_KUEUE_PRIORITY) or ""),
        pod_priority_class=str(next(filter(None, classes), "")),
        time_limit=int(limit) if limit.isdecimal() and int(limit) else None,
        pod_sets=sets,
    )


def name_of(job: DLJob) -> str:
    """The name of its Workload. Jobs of several kinds may have one name, so the uid is a part."""
    digest = hashlib.sha256(job.uid.encode()).hexdigest()[:5]
    prefix = f"{job.kind.lower()}-{job.name}"[: _LONGEST_NAME - 6].rstrip("-.")
    return f"{prefix}-{digest}"


def build(job: DLJob, asked: QuotaRequest, priority: int | None) -> Mapping[str, Any]:
    """The manifest of a new Workload; ``priority`` is that of its class, ``None`` where it has none."""
    spec: dict[str, Any] = {"queueName": asked.queue, "podSets": list(asked.pod_sets), **priority_of(asked, priority)}
    if asked.time_limit is not None:
        spec["maximumExecutionTimeSeconds"] = asked.time_limit
    metadata = owned_objects.metadata(job, name_of(job))
    metadata["annotations"] = {c.ANNOTATION_SPEC_HASH: asked.hash}
    return {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": metadata, "spec": spec}


def priority_of(asked: QuotaRequest, priority: int | None) -> Mapping[str, Any]:
    """The fields of a Workload's spec with its priority."""
    if priority is None:
        return {}
    group, kind, name = (
        ("kueue.x-k8s.io", "WorkloadPriorityClass", asked.priority_class)
        if asked.priority_class
        else ("scheduling.k8s.io", "PriorityClass", asked.pod_priority_class)
    )
    return {"priorityClassRef": {"group": group, "kind": kind, "name": name}, "priority": priority}


def with_condition(
    found: Iterable[Mapping[str, Any]], new: conditions.NewCondition, now: str
) -> list[Mapping[str, Any]]:
    """The conditions of a Workload with one set; it keeps its time where its status does not change.

    Unlike those of a job (:func:`..status.conditions.set_condition`) they exclude no other one.
    """
    old = list(found)
    before = conditions.get_condition(old, new.type)
    since = before["lastTransitionTime"] if before and before.get("status") == new.status else now
    kept = (one for one in old if one.get("type") != new.type)
    return [*kept, {**dataclasses.asdict(new), "lastTransitionTime": since}]
