"""What to tell the user of a job that cannot be understood. It has no parsed form, so this works on the raw object."""

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


def plan_invalid(resource: Mapping[str, Any], problems: Sequence[str], now: datetime, began: str = "") -> Plan:
    """Say it once per edit. A job that runs already goes on with its last good spec; one that never ran is Failed.

    ``began`` is when the first pod of a job was made that has no status yet (RFC 3339), "" where it has none.
    """
    metadata, old = as_mapping(resource.get("metadata")), as_mapping(resource.get("status"))
    generation = metadata.get("generation")
    generation = generation if isinstance(generation, int) else 0
    if is_finished(old, generation):
        return Plan()  # over already: an edit changes nothing any more
    told = clip("; ".join(problems))
    reason = f"{resource.get('kind')}FailedValidation"
    fields: dict[str, Any] = {
        **old,
        "runtimeId": old.get("runtimeId") or naming.runtime_id(str(metadata.get("uid") or "")),
        "observedGeneration": generation,
    }
    if not old and began:
        fields |= {"phase": c.PHASE_CREATING, "startTime": began}
    if fields.get("startTime") and outcome(old) is None:
        fields["reason"] = clip(f"the spec is invalid, the pods of the last good one go on: {told}")
    else:
        others = [
            x
            for x in conditions.read_conditions(old)
            if x.get("message") == told or x.get("type") != c.CONDITION_FAILED
        ]
        fields |= {
            "phase": c.PHASE_FAILED,
            "state": c.STATE_FAILED,
            "reason": clip(f"{c.REASON_INVALID}: {told}"),
            "failure": {"reason": c.REASON_INVALID, "message": told},
            "conditions": conditions.set_condition(others, c.CONDITION_FAILED, reason, told, clock.stamp(now)),
        }
    if fields == old:
        return Plan()
    return Plan(status=fields, events=(EventNote("Warning", reason, told),))
