"""The plan for an invalid job: status and Event. It works on the raw object, because the job cannot be parsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic import clock, naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    clip,
    is_finished,
    outcome,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import EventNote, Plan


def plan_invalid(
    resource: Mapping[str, Any], problems: Sequence[str], now: datetime, first_pod_created: str = ""
) -> Plan:
    """Report the errors once per edit. A running job keeps the pods of its last valid spec; a new job is Failed.

    ``first_pod_created`` is the creation time (RFC 3339) of the first pod of a job without a status, "" where it has no
    pods.
    """
    metadata, old = as_mapping(resource.get("metadata")), as_mapping(resource.get("status"))
    generation = metadata.get("generation")
    generation = generation if isinstance(generation, int) else 0
    if is_finished(old, generation):
        return Plan()  # an edit of a finished job has no effect
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
        return Plan()
    return Plan(status=fields, events=(EventNote("Warning", reason, message),))
