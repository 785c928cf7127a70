"""The v1 conditions: an ordered list, the newest last, with the peer's own algebra.

Source: the training operator's documented behaviour (release 1.9): Restarting and Running exclude each other;
a finished job's Running turns False and stays; an unchanged condition is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c

Condition = Mapping[str, Any]

_EXCLUDES = {c.CONDITION_RUNNING: c.CONDITION_RESTARTING, c.CONDITION_RESTARTING: c.CONDITION_RUNNING}
_ENDS = (c.CONDITION_SUCCEEDED, c.CONDITION_FAILED, c.CONDITION_SUSPENDED)


def read_conditions(status: Mapping[str, Any]) -> list[Condition]:
    """The conditions of a status; operators before this one left ``null`` there."""
    held = status.get("conditions")
    return [x for x in held if isinstance(x, Mapping)] if isinstance(held, list) else []


def is_condition_true(conditions: Iterable[Condition], type_: str) -> bool:
    """Whether the condition of that type is True."""
    return any(x.get("type") == type_ and x.get("status") == "True" for x in conditions)


def set_condition(
    conditions: Iterable[Condition], type_: str, reason: str, message: str, now: str, status: str = "True"
) -> list[Condition]:
    """The list with the condition set, and with what it excludes taken out or turned False."""
    old = list(conditions)
    present = next((x for x in old if x.get("type") == type_), None)
    if present and (present.get("status"), present.get("reason")) == (status, reason):
        return old
    transition = now
    if present and present.get("status") == status:
        transition = present.get("lastTransitionTime", now)
    kept: list[Condition] = []
    for other in old:
        if other.get("type") in (type_, _EXCLUDES.get(type_)):
            continue
        ends = type_ in _ENDS and status == "True"
        if ends and other.get("type") == c.CONDITION_RUNNING and other.get("status") == "True":
            other = {**other, "status": "False", "lastUpdateTime": now, "lastTransitionTime": now}
        kept.append(other)
    kept.append(
        {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastUpdateTime": now,
            "lastTransitionTime": transition,
        }
    )
    return kept
