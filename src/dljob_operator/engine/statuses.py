"""Read the statuses of jobs, in which a tenant may have written anything. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import STATE_FAILED, STATE_SUCCEEDED

_ENDS = (STATE_SUCCEEDED, STATE_FAILED)


def as_mapping(value: Any) -> Mapping[str, Any]:
    """The value, or an empty mapping for what is none."""
    return value if isinstance(value, Mapping) else {}


def status_of(job: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The status of a job, empty where it has none."""
    return as_mapping((job or {}).get("status"))


def conditions_of(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = status.get("conditions")
    return (one for one in found if isinstance(one, Mapping)) if isinstance(found, list) else iter(())


def true_conditions(status: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions that are True: their types, and the times since which they are."""
    return {
        str(one.get("type")): one.get("lastTransitionTime")
        for one in conditions_of(status)
        if one.get("status") == "True"
    }


def is_stalled(status: Mapping[str, Any]) -> bool:
    """Whether the job stalls, by its runPolicy.stallPolicy."""
    return "Stalled" in true_conditions(status)


def end_of(status: Mapping[str, Any]) -> str:
    """The state Succeeded or Failed in which the job has ended, "" for none. training-operator writes no state."""
    if "state" in status:
        state = str(status["state"])
        return state if state in _ENDS else ""
    return next((type_ for type_ in true_conditions(status) if type_ in _ENDS), "")


def time_of(value: Any) -> datetime | None:
    """The time that a status gives, None for what is none, or has no time zone."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
        return found.astimezone(UTC) if found is not None and found.tzinfo else None
    except (ValueError, OverflowError):
        return None
