"""What a job asks Kueue for: one pod set for each replica type, and for each group of replicas of a type.

Source: the API ``kueue.x-k8s.io/v1beta2`` of Kueue 0.19, in which a Workload has at most 18 pod sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping, maps
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, PodTemplate, ReplicaGroup

LARGEST = 18

PodSet = Mapping[str, Any]

_POD_FIELDS = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "runtimeClassName",
    "overhead",
    "priorityClassName",
    "resources",
    "resourceClaims",
    "topologySpreadConstraints",
)
"""Fields of a pod's spec by which Kueue chooses flavors and counts resources. The others stay out of the Workload: the
variables of a job may be secret."""
_CONTAINER_FIELDS = ("name", "image", "resources", "restartPolicy")

_TOPOLOGY: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "kueue.x-k8s.io/podset-required-topology": ("required", str),
    "kueue.x-k8s.io/podset-preferred-topology": ("preferred", str),
    "kueue.x-k8s.io/podset-unconstrained-topology": ("unconstrained", lambda text: text == "true"),
    "kueue.x-k8s.io/podset-slice-required-topology": ("podSetSliceRequiredTopology", str),
    "kueue.x-k8s.io/podset-slice-size": ("podSetSliceSize", int),
    "kueue.x-k8s.io/podset-group-name": ("podSetGroupName", str),
}
"""The annotations of a template that ask for a topology, each with its field in a pod set."""


def templates(job: DLJob) -> Iterator[tuple[str, ReplicaGroup, PodTemplate]]:
    """The templates of ``job`` that replicas have, each with the name of its pod set."""
    for group in job.groups:
        for one in group.templates:
            if len(one.indexes):
                yield name_of(group, one), group, one


def name_of(group: ReplicaGroup, template: PodTemplate) -> str:
    """The name of the pod set of ``template``: the type in lower case, and the group of replicas where it has one."""
    return f"{group.type}-{template.group}".lower() if template.group else group.type.lower()


def build(job: DLJob) -> list[PodSet]:
    """The pod sets of ``job``, in the order in which it lists its types."""
    return [_pod_set(job, name, one) for name, _, one in templates(job)]


def _pod_set(job: DLJob, name: str, template: PodTemplate) -> PodSet:
    metadata = as_mapping(template.template.get("metadata"))
    spec = as_mapping(template.template.get("spec"))
    kept = {field: spec[field] for field in _POD_FIELDS if field in spec}
    if job.run_policy.scheduling.priority_class:
        kept.setdefault("priorityClassName", job.run_policy.scheduling.priority_class)
    for field in ("initContainers", "containers"):
        if containers := maps(spec.get(field)):
            kept[field] = [{key: one[key] for key in _CONTAINER_FIELDS if key in one} for one in containers]
    labels = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    pod_set = {"name": name, "count": len(template.indexes), "template": {"metadata": labels, "spec": kept}}
    request = _topology(as_mapping(metadata.get("annotations")))
    if request and template.indexes.start == 0:  # Kueue counts the ranks of a pod set from 0
        request["podIndexLabel"] = c.LABEL_REPLICA_INDEX
    return {**pod_set, "topologyRequest": request} if request else pod_set


def _topology(annotations: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for annotation, (field, read) in _TOPOLOGY.items():
        if annotation in annotations:
            try:
                found[field] = read(annotations[annotation])
            except ValueError:
                found[field] = annotations[annotation]  # the API server refuses it, and names the field
    return found
