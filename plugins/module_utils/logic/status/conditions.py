"""The v1 conditions: an ordered list, the newest last, with training-operator's rules.

Source: the documented behaviour of training-operator (release 1.9): Restarting and Running exclude each other; Running
becomes False when the job finishes; an unchanged condition keeps its place and times.
Stalled, which v1 does not have, comes first: clients take the last condition for the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import maps
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c

Condition = Mapping[str, Any]

_EXCLUDES = {c.CONDITION_RUNNING: c.CONDITION_RESTARTING, c.CONDITION_RESTARTING: c.CONDITION_RUNNING}
_ENDS = (c.CONDITION_SUCCEEDED, c.CONDITION_FAILED, c.CONDITION_SUSPENDED)


def read_conditions(status: Mapping[str, Any]) -> list[Condition]:
    """The conditions of a status; other operators wrote ``null`` there."""
    return maps(status.get("conditions"))


def get_condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of that type, whatever its status."""
    return next((x for x in conditions if x.get("type") == type_), None)


def is_condition_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Whether the condition of that type is True."""
    return any(x.get("type") == type_ and x.get("status") == "True" for x in conditions)


@dataclass(frozen=True, slots=True)
class NewCondition:
    """A condition to set."""

    type: str
    reason: str
    message: str
    status: str = "True"


def set_condition(conditions: Iterable[Condition], new: NewCondition, now: str) -> list[Condition]:
    """The list with the condition set; conditions that it excludes are removed or set to False."""
    old = list(conditions)
    type_, reason, status = new.type, new.reason, new.status
    present = get_condition(old, type_)
    if present and (present.get("status"), present.get("reason")) == (status, reason):
        return old
    transition = now
    if present and present.get("status") == status:
        transition = present.get("lastTransitionTime", now)
    kept: list[Condition] = []
    for other in old:
        if other.get("type") in (type_, _EXCLUDES.get(type_)):
            continue
        is_end = type_ in _ENDS and status == "True"
        if is_end and other.get("type") == c.CONDITION_RUNNING and other.get("status") == "True":
            # with why: "is running" is not true of it any more
            because = {"reason": reason, "message": new.message}
            other = {**other, **because, "status": "False", "lastUpdateTime": now, "lastTransitionTime": now}
        kept.append(other)
    condition = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": new.message,
        "lastUpdateTime": now,
        "lastTransitionTime": transition,
    }
    return [condition, *kept] if type_ == c.CONDITION_STALLED else [*kept, condition]
