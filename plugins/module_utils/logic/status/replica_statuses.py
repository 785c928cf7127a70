"""Counts the replicas of each type by state, and renders the counts in the status format of the flavor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_failed, is_done
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    CONDITION_SUSPENDED,
    LABEL_JOB_UID,
    LABEL_REPLICA_TYPE,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import LAYOUT_SINGLE, STATUS_V1
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"


def state_of(pod: PodState) -> str:
    """Pending, Running, Succeeded or Failed."""
    if has_failed(pod):
        return FAILED
    if is_done(pod):
        return SUCCEEDED
    return RUNNING if pod.phase == "Running" else PENDING


def count(job: DLJob, observed: Observed, completed: dict[str, set[int]]) -> dict[str, Counter[str]]:
    """Number of replicas by type and state. A replica without a pod is Succeeded if it is completed, else Pending."""
    counts: dict[str, Counter[str]] = {}
    for group in job.groups:
        states: dict[int, str] = {}
        for pod in sorted(observed.pods_of(group.type), key=lambda p: p.attempt):
            if pod.index < group.replicas and not pod.deleting:
                states[pod.index] = state_of(pod)
        for index in completed.get(group.type.lower(), ()):
            states[index] = SUCCEEDED
        counts[group.type] = Counter(states.values())
        counts[group.type][PENDING] += group.replicas - len(states)
    return counts


def present(job: DLJob, observed: Observed) -> dict[str, dict[str, list[int]]]:
    """For the ``objects`` hook: by type the indexes of the replicas that have a pod (``created``), and that run."""
    created: dict[str, list[int]] = {}
    running: dict[str, list[int]] = {}
    for group in job.groups:
        pods = [p for p in observed.pods_of(group.type) if not p.deleting and p.index < group.replicas]
        created[group.type] = sorted({p.index for p in pods})
        running[group.type] = sorted({p.index for p in pods if state_of(p) == RUNNING})
    return {"created": created, "running": running}


def render(job: DLJob, counts: dict[str, Counter[str]]) -> Any:
    """``replicaStatuses`` in the flavor's format: v1alpha1's list, v1's map, or the only entry (caffe2-operator)."""
    if job.flavor.status == STATUS_V1 and job.flavor.replicas_layout == LAYOUT_SINGLE:
        return {name: number for states in counts.values() for name, number in _single(states).items() if number}
    if job.flavor.status == STATUS_V1:
        return {g.type: _v1(job, g, counts[g.type]) for g in job.groups}
    return [_v1alpha1(job, g, counts[g.type]) for g in job.groups]


def _v1alpha1(job: DLJob, group: ReplicaGroup, states: Counter[str]) -> dict[str, Any]:
    present = {state: number for state, number in sorted(states.items()) if number}
    order = (FAILED, PENDING, RUNNING, SUCCEEDED)
    return {
        "ReplicasStates": present,
        job.flavor.status_type_field: group.type.upper(),
        "state": next((s for s in order if s in present), SUCCEEDED),
    }


def _v1(job: DLJob, group: ReplicaGroup, states: Counter[str]) -> dict[str, Any]:
    counted = {"active": states[RUNNING], "succeeded": states[SUCCEEDED], "failed": states[FAILED]}
    return {
        **{name: number for name, number in counted.items() if number},
        "selector": f"{LABEL_JOB_UID}={job.uid},{LABEL_REPLICA_TYPE}={group.type.lower()}",
    }


def _single(states: Counter[str]) -> dict[str, int]:
    """The counts of the only type, in caffe2-operator's format: a pending replica counts as active."""
    active = states[RUNNING] + states[PENDING]
    return {"active": active, "succeeded": states[SUCCEEDED], "failed": states[FAILED]}


def without_pods(status: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of a suspended job with this ``status`` whose spec no longer says how many replicas it has.

    Those of v1alpha1's list, which no queue reads, stay.
    """
    by_type = status.get("replicaStatuses")
    if not isinstance(by_type, Mapping):
        return {}
    counted = {
        type_: {name: value for name, value in entry.items() if name == "selector"}
        for type_, entry in by_type.items()
        if isinstance(entry, Mapping)  # else the layout has no types
    }
    _, _, total = str(status.get("replicas") or "").partition("/")
    return {
        "state": CONDITION_SUSPENDED,
        "replicaStatuses": counted,
        **({"replicas": f"0/{total}"} if total else {}),
    }


def settled(job: DLJob, counts: dict[str, Counter[str]]) -> dict[str, Counter[str]]:
    """The final counts of a succeeded job: v1 counts replicas that still run as succeeded, v1alpha1 does not."""
    if job.flavor.status != STATUS_V1:
        return counts
    return {
        type_: Counter({**states, RUNNING: 0, SUCCEEDED: states[RUNNING] + states[SUCCEEDED]})
        for type_, states in counts.items()
    }


def summary(job: DLJob, counts: dict[str, Counter[str]]) -> str:
    """``<running or succeeded>/<total>``, for the printer column."""
    up = sum(states[RUNNING] + states[SUCCEEDED] for states in counts.values())
    return f"{up}/{job.total}"


def all_up(job: DLJob, counts: dict[str, Counter[str]]) -> bool:
    """Whether every replica runs or has succeeded. Of an elastic type one is enough, or all have failed."""
    return not any(_waits(type_ == job.elastic_type, states) for type_, states in counts.items())


def _waits(elastic: bool, states: Counter[str]) -> bool:
    up, failed = states[RUNNING] + states[SUCCEEDED], states[FAILED]
    return up == 0 and failed < states.total() if elastic else up < states.total()
