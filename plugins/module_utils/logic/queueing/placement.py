"""What the admission of a Workload adds to the pods of its job, and a job with it.

The operator computes it once an admission, from the flavors of that moment, and keeps it in an annotation of the
Workload: a flavor that an administrator edits later changes no running job.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.queueing import pod_sets
from ansible_collections.dljob.operator.plugins.module_utils.logic.queueing.workload import ADMITTED, Workload
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_list, as_mapping, maps
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup

LABEL_POD_SET = "kueue.x-k8s.io/podset"
"""Label of a pod with its pod set, by which Kueue assigns a topology's domains."""
ANNOTATION_WORKLOAD = "kueue.x-k8s.io/workload"
"""Annotation of a pod with the name of its Workload, likewise."""
TOPOLOGY_GATE = "kueue.x-k8s.io/topology"
"""Scheduling gate of a pod that waits for its domain."""
_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
_REQUESTS = (
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-preferred-topology",
    _UNCONSTRAINED,
)
_MAPS = ("labels", "annotations", "nodeSelector")
_LISTS = ("tolerations", "schedulingGates")

Addition = Mapping[str, Any]
"""What is added to a template: ``labels``, ``annotations``, ``nodeSelector``, ``tolerations``, ``schedulingGates``."""


def flavors_of(workload: Workload) -> tuple[str, ...]:
    """The names of the ResourceFlavors that the admission assigns."""
    sets = maps(workload.admission.get("podSetAssignments"))
    return tuple(dict.fromkeys(name for one in sets for name in as_mapping(one.get("flavors")).values()))


def of_admission(workload: Workload) -> str:
    """What identifies one admission: another one may have other flavors."""
    moment = workload.condition(ADMITTED).get("lastTransitionTime")
    # a domain that Kueue replaces, because its node has failed, is no other admission
    sets = [
        {key: value for key, value in one.items() if key != "topologyAssignment"}
        for one in maps(workload.admission.get("podSetAssignments"))
    ]
    return owned_objects.content_hash([moment, workload.admission.get("clusterQueue"), sets])


def compute(workload: Workload, flavors: Mapping[str, Mapping[str, Any]]) -> str:
    """The text for the annotation, from the specs of the ResourceFlavors by name."""
    additions = {one["name"]: _addition(workload, one, flavors) for one in _assignments(workload)}
    return json.dumps({"admission": of_admission(workload), "podSets": additions}, sort_keys=True)


def stored(workload: Workload) -> Mapping[str, Addition] | None:
    """What the annotation has, by pod set; ``None`` where it has none for this admission."""
    try:
        found = as_mapping(json.loads(workload.placement or "{}"))
    except ValueError:
        return None
    return as_mapping(found.get("podSets")) if found.get("admission") == of_admission(workload) else None


def _assignments(workload: Workload) -> list[Mapping[str, Any]]:
    return maps(workload.admission.get("podSetAssignments"))


def _addition(
    workload: Workload, assignment: Mapping[str, Any], flavors: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    added: dict[str, Any] = {
        "labels": {LABEL_POD_SET: assignment["name"]},
        "annotations": {ANNOTATION_WORKLOAD: workload.name},
    }
    for name in dict.fromkeys(as_mapping(assignment.get("flavors")).values()):
        spec = flavors[name]
        _merge(added, {"nodeSelector": spec.get("nodeLabels"), "tolerations": spec.get("tolerations")})
    if assignment.get("topologyAssignment"):
        added["schedulingGates"] = [{"name": TOPOLOGY_GATE}]
    for check in workload.checks:
        for update in maps(check.get("podSetUpdates")):
            if update.get("name") == assignment["name"]:
                _merge(added, update)
    return added


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for field in _MAPS:
        if more.get(field):
            into[field] = {**into.get(field, {}), **more[field]}
    for field in _LISTS:
        if more.get(field):
            have = into.get(field, [])
            into[field] = [*have, *(one for one in more[field] if one not in have)]


def admit(job: DLJob, additions: Mapping[str, Addition]) -> DLJob:
    """``job`` with what its admission adds to its templates; Kueue's values win."""

    def of_group(group: ReplicaGroup) -> ReplicaGroup:
        own = additions.get(group.type.lower(), {})
        groups = tuple(
            dataclasses.replace(one, template=_with(one.template, additions.get(pod_sets.name_of(group, one), {})))
            for one in group.groups
        )
        return dataclasses.replace(group, template=_with(group.template, own), groups=groups)

    return dataclasses.replace(job, groups=tuple(of_group(group) for group in job.groups))


def _with(template: Mapping[str, Any], added: Addition) -> Mapping[str, Any]:
    if not added:
        return template
    metadata, spec = as_mapping(template.get("metadata")), as_mapping(template.get("spec"))
    merged = {key: {**as_mapping(metadata.get(key)), **as_mapping(added.get(key))} for key in ("labels", "annotations")}
    if added.get("schedulingGates") and not any(one in merged["annotations"] for one in _REQUESTS):
        merged["annotations"][_UNCONSTRAINED] = "true"
    changed: dict[str, Any] = {}
    if added.get("nodeSelector"):
        changed["nodeSelector"] = {**as_mapping(spec.get("nodeSelector")), **added["nodeSelector"]}
    for field in _LISTS:
        if added.get(field):
            have = as_list(spec.get(field))
            changed[field] = [*have, *(one for one in added[field] if one not in have)]
    return {**template, "metadata": {**metadata, **merged}, "spec": {**spec, **changed}}
