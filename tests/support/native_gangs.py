"""What Kubernetes 1.37 does with its own PodGroups, on a fake API server: admission, scheduler, controller manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GROUP, PLURAL = "scheduling.k8s.io", "podgroups"
PROTECTION = "scheduling.k8s.io/podgroup-protection"
IMMUTABLE = ("disruptionMode", "priorityClassName", "priority")

Object = Mapping[str, Any]
Objects = Mapping[tuple[str, str], Mapping[str, Object]]
"""By namespace and plural, then by name."""


def is_group(group: str, plural: str) -> bool:
    return (group, plural) == (GROUP, PLURAL)


def admit(made: dict[str, Any]) -> None:
    """Give a new group its finalizer and the defaults that the API server sets."""
    made["metadata"]["finalizers"] = [PROTECTION]
    made["spec"] = {"disruptionMode": {"single": {}}, "priority": 0, **made["spec"]}


def problem_of_update(old: Object, new: Object) -> str:
    """What the API server finds wrong with a changed group, "" for nothing."""
    for name in IMMUTABLE:
        if old["spec"].get(name) != new["spec"].get(name):
            return f"spec.{name}: Invalid value: field is immutable"
    if set(old["spec"]["schedulingPolicy"]) != set(new["spec"]["schedulingPolicy"]):
        return "spec.schedulingPolicy.gang: Invalid value: field cannot be cleared once set"
    return ""


def members(objects: Objects, namespace: str, name: str) -> list[Object]:
    """The pods that the scheduler counts to a group: those that have not ended."""
    return [
        pod
        for pod in objects.get((namespace, "pods"), {}).values()
        if (pod["spec"].get("schedulingGroup") or {}).get("podGroupName") == name
        and pod["status"]["phase"] not in ("Succeeded", "Failed")
    ]


def may_start(objects: Objects, pod: Object) -> bool:
    """Whether the scheduler may place a pod: it is in no group, or in one of which enough pods exist."""
    name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
    if name is None:
        return True
    namespace = pod["metadata"]["namespace"]
    group = objects.get((namespace, PLURAL), {}).get(name)
    if group is None:
        return False
    found = members(objects, namespace, name)
    alike = {one["spec"].get("priorityClassName", "") for one in found} <= {group["spec"].get("priorityClassName", "")}
    least: int = group["spec"]["schedulingPolicy"]["gang"]["minCount"]
    return alike and len(found) >= least


def released(objects: Objects) -> list[Object]:
    """The groups whose finalizer the controller manager removes: they are deleted, and all their pods have ended."""
    return [
        group
        for (namespace, plural), groups in objects.items()
        if plural == PLURAL
        for name, group in groups.items()
        if PROTECTION in (group["metadata"].get("finalizers") or ())
        and group["metadata"].get("deletionTimestamp")
        and not members(objects, namespace, name)
    ]
