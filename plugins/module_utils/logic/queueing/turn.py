"""Whether a job has its turn: what a reconcile does with it as long as Kueue has not admitted its Workload.

A job that waits is reconciled as a suspended one, and one that Kueue has admitted with what the admission adds to its
templates, as if Kueue's own integration had written both into the job.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import managers
from ansible_collections.dljob.operator.plugins.module_utils.logic.queueing import placement, pod_sets
from ansible_collections.dljob.operator.plugins.module_utils.logic.queueing.workload import (
    EVICTED,
    FINISHED,
    QUOTA_RESERVED,
    QuotaRequest,
    Workload,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import clip, outcome
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob

Status = Mapping[str, Any]
_REACTIVATE = "set spec.active there to queue it again"


def may_concern(resource: Mapping[str, Any], *, cached: bool) -> bool:
    """Whether to look for a Workload of the job, which only one that names a queue needs where that costs a request.

    MultiKueue's copy of a job has its place already.
    """
    metadata = resource["metadata"]
    return (cached or managers.is_queued(metadata)) and not managers.is_copy_of_multikueue(metadata)


def begins(resource: Mapping[str, Any]) -> bool:
    """Whether a job without a Workload queues.

    One that began before the operator took part in queueing runs to its end without a quota. Every job that has ever
    been queued has the condition Suspended, True or False.
    """
    found = conditions.read_conditions(as_mapping(resource.get("status")))
    began = conditions.is_condition_true(found, c.CONDITION_CREATED)
    runs_unqueued = began and conditions.get_condition(found, c.CONDITION_SUSPENDED) is None
    return managers.is_queued(resource["metadata"]) and not runs_unqueued


def take(job: DLJob, asked: QuotaRequest, workload: Workload | None) -> DLJob:
    """``job`` as it is reconciled: admitted, held, or as it is where it has finished or its user suspends it."""
    if outcome(job.status) is not None or job.run_policy.suspend:
        return job
    if workload is not None and workload.is_admitted and not workload.deleting and workload.hash == asked.hash:
        additions = placement.stored(workload)
        if additions is not None:
            return placement.admit(job, additions)
    policy = dataclasses.replace(job.run_policy, suspend=True)
    return dataclasses.replace(job, run_policy=policy, held=_reason(job, asked, workload))


def _reason(job: DLJob, asked: QuotaRequest, workload: Workload | None) -> str:
    if problem := problem_of(asked):
        return problem
    before, waits = str(as_mapping(job.status).get("reason") or ""), _waits(asked)
    if workload is None or workload.deleting:
        return before if before.startswith(waits) else waits
    if workload.has(FINISHED):
        return f"Its Workload {workload.name} has ended: {managers.RECREATE}"
    if workload.hash != asked.hash:
        return f"{waits} again, because what it asks for has changed"
    if workload.has(EVICTED):
        message = workload.condition(EVICTED).get("message")
        if not workload.active:
            return f"Kueue has deactivated its Workload {workload.name}, {_REACTIVATE}: {message}"
        return f"{waits} again: {message}"
    if not workload.active:
        return f"Its Workload {workload.name} is inactive, {_REACTIVATE}"
    if workload.is_admitted:
        return before  # it starts as soon as its place is known
    if workload.has(QUOTA_RESERVED):
        states = (f"{one.get('name')} is {one.get('state')}" for one in workload.checks if one.get("state") != "Ready")
        return f"{waits} for admission checks: {', '.join(states)}"
    message = workload.condition(QUOTA_RESERVED).get("message")
    return f"{waits}: {message}" if message else waits


def _waits(asked: QuotaRequest) -> str:
    return f"Waits in the queue {asked.queue}"


def with_problem(status: Status, asked: QuotaRequest, problem: str) -> Status | None:
    """The status with why the operator cannot ask Kueue for a quota; ``None`` where it says so already."""
    reason = clip(f"{_waits(asked)}: {problem}")
    return None if status.get("reason") == reason else {**status, "reason": reason}


def problem_of(asked: QuotaRequest) -> str:
    """Why Kueue cannot queue such a job at all, "" where it can."""
    if len(asked.pod_sets) > pod_sets.LARGEST:
        return (
            f"Kueue queues jobs with at most {pod_sets.LARGEST} pod sets, and the job has {len(asked.pod_sets)}: "
            "a replica type and a group of replicas are one each"
        )
    return ""
