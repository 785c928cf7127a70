"""The plan for an invalid job: status and Event, and the deletion of its pods once it is suspended.

It works on the raw object, because the job cannot be parsed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import batch_job, clock, managers, naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.replica_statuses import RUNNING, state_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    PROGRESS,
    clip,
    is_finished,
    outcome,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import EventNote, Plan, PodState


def plan_invalid(
    resource: Mapping[str, Any],
    framework: Framework,
    problems: Sequence[str],
    now: datetime,
    pods: Sequence[PodState] = (),
) -> Plan:
    """Report the errors once per edit. A running job keeps the pods of its last valid spec; a new job is Failed.

    Suspended, also by Kueue, it loses them like a valid job, and it is Failed if it is resumed with these errors.
    ``pods`` are those of a job that is suspended or has no status. A job that another controller runs is left alone.
    """
    if managers.names_another(resource, framework):
        return Plan()
    metadata, old = as_mapping(resource.get("metadata")), as_mapping(resource.get("status"))
    generation = metadata.get("generation")
    generation = generation if isinstance(generation, int) else 0
    is_queued = managers.is_queued(metadata)
    if is_finished(old, generation, is_queued=is_queued):
        left = _time_to_live(resource, old, now)  # an edit of a finished job has no other effect
        return Plan(delete_job=True) if left is not None and left <= 0 else Plan(requeue_after=left)
    message = clip("; ".join(problems))
    reason = f"{resource.get('kind')}FailedValidation"
    fields: dict[str, Any] = {
        **old,
        "runtimeId": old.get("runtimeId") or naming.runtime_id(str(metadata.get("uid") or "")),
        "observedGeneration": generation,
    }
    first_pod_created = min((pod.created for pod in pods if pod.created), default="")
    if not old and first_pod_created:
        fields |= {"phase": c.PHASE_CREATING, "startTime": first_pod_created}
    has_begun = bool(fields.get("startTime")) and outcome(old) is None
    if has_begun and is_suspended(resource):
        return _suspended(resource, fields, "; ".join(problems), pods, now)
    if has_begun and not conditions.is_condition_true(conditions.read_conditions(old), c.CONDITION_SUSPENDED):
        fields["reason"] = clip(f"the spec is invalid, the pods of the last valid spec keep running: {message}")
    else:
        if is_queued:
            message = clip(f"{message}; {managers.RECREATE}")
        others = [
            x
            for x in conditions.read_conditions(old)
            if x.get("message") == message or x.get("type") != c.CONDITION_FAILED
        ]
        fields |= {
            "phase": c.PHASE_FAILED,
            "state": c.STATE_FAILED,
            "reason": clip(f"{c.REASON_INVALID}: {message}"),
            "failure": {"reason": c.REASON_INVALID, "message": message},
            "conditions": conditions.set_condition(
                others, conditions.NewCondition(c.CONDITION_FAILED, reason, message), clock.stamp(now)
            ),
        }
    if fields == old:
        return Plan()  # a job that runs on: it has not ended
    left = _time_to_live(resource, fields, now) if outcome(fields) else None
    return Plan(status=fields, events=(EventNote("Warning", reason, message),), requeue_after=left)


def is_suspended(resource: Mapping[str, Any]) -> bool:
    """Whether the job, which may be invalid, is suspended."""
    return as_mapping(as_mapping(resource.get("spec")).get("runPolicy")).get("suspend") is True


def _suspended(
    resource: Mapping[str, Any], fields: dict[str, Any], problem: str, pods: Sequence[PodState], now: datetime
) -> Plan:
    """No pods: the queue, or the administrator, that has suspended the job does not wait for its errors to be mended.

    ``fields`` are those of the status so far.
    """
    old, kind = as_mapping(resource.get("status")), resource.get("kind")
    message = f"{kind} {as_mapping(resource.get('metadata')).get('name')} is suspended."
    suspended = conditions.NewCondition(c.CONDITION_SUSPENDED, f"{kind}Suspended", message)
    before = conditions.read_conditions(old)
    fields |= {
        "phase": c.PHASE_CREATING,
        "reason": clip(f"the spec is invalid: {problem}"),
        "conditions": conditions.set_condition(before, suspended, clock.stamp(now)),
        **_counts(old, pods),
    }
    for name in PROGRESS:
        fields.pop(name, None)
    gone = tuple(batch_job.deletion(pod) for pod in pods if not pod.deleting)
    events = []
    if fields["reason"] != old.get("reason"):
        events.append(EventNote("Warning", f"{kind}FailedValidation", clip(problem)))
    if fields["conditions"] != before:
        events.append(EventNote("Normal", suspended.reason, message))
    return Plan(
        deletions=gone,
        status=None if fields == old else fields,
        events=tuple(events),
        presumes_current_spec=bool(gone),
    )


def _counts(old: Mapping[str, Any], pods: Sequence[PodState]) -> dict[str, Any]:
    """The counts of a suspended job, which has lost the number of its replicas: those that still run, by type.

    Those of v1alpha1's list, which no queue reads, stay.
    """
    running = Counter(pod.type for pod in pods if not pod.deleting and state_of(pod) == RUNNING)
    by_type = old.get("replicaStatuses")
    if not isinstance(by_type, Mapping):
        return {}
    counted = {}
    for type_, entry in by_type.items():
        rest = {name: value for name, value in as_mapping(entry).items() if name == "selector"}
        active = running[str(type_).lower()]
        counted[type_] = {**({"active": active} if active else {}), **rest}
    _, _, total = str(old.get("replicas") or "").partition("/")
    summary = {"replicas": f"{running.total()}/{total}"} if total else {}
    return {"state": c.CONDITION_SUSPENDED, "replicaStatuses": counted, **summary}


def _time_to_live(resource: Mapping[str, Any], status: Mapping[str, Any], now: datetime) -> float | None:
    """Seconds until the operator deletes the failed job (0 or less: now), ``None`` where it keeps the job.

    The job cannot be parsed, but may well have a valid ``ttlSecondsAfterFinished``.
    """
    if managers.is_copy_of_multikueue(as_mapping(resource.get("metadata"))):
        return None
    policy = as_mapping(as_mapping(resource.get("spec")).get("runPolicy"))
    ttl = policy.get("ttlSecondsAfterFinished")
    ended = conditions.get_condition(conditions.read_conditions(status), outcome(status) or "")
    ago = clock.seconds_since(ended.get("lastTransitionTime"), now) if ended else None
    if isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 0 or ago is None:
        return None
    return ttl - ago
