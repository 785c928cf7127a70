"""The plan for an invalid job: status and Event. It works on the raw object, because the job cannot be parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import clock, managers, naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    clip,
    is_finished,
    outcome,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import EventNote, Plan


def plan_invalid(
    resource: Mapping[str, Any],
    framework: Framework,
    problems: Sequence[str],
    now: datetime,
    first_pod_created: str = "",
) -> Plan:
    """Report the errors once per edit. A running job keeps the pods of its last valid spec; a new job is Failed.

    ``first_pod_created`` is the creation time (RFC 3339) of the first pod of a job without a status, "" where it has no
    pods. A job that another controller runs is left alone.
    """
    if managers.names_another(resource, framework):
        return Plan()
    metadata, old = as_mapping(resource.get("metadata")), as_mapping(resource.get("status"))
    generation = metadata.get("generation")
    generation = generation if isinstance(generation, int) else 0
    if is_finished(old, generation):
        left = _time_to_live(resource, old, now)  # an edit of a finished job has no other effect
        return Plan(delete_job=True) if left is not None and left <= 0 else Plan(requeue_after=left)
    message = clip("; ".join(problems))
    reason = f"{resource.get('kind')}FailedValidation"
    fields: dict[str, Any] = {
        **old,
        "runtimeId": old.get("runtimeId") or naming.runtime_id(str(metadata.get("uid") or "")),
        "observedGeneration": generation,
    }
    if not old and first_pod_created:
        fields |= {"phase": c.PHASE_CREATING, "startTime": first_pod_created}
    if fields.get("startTime") and outcome(old) is None:
        fields["reason"] = clip(f"the spec is invalid, the pods of the last valid spec keep running: {message}")
    else:
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
