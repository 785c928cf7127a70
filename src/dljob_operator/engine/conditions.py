"""Compute the conditions that ansible-operator maintains with `manageStatus: true`: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Condition = dict[str, Any]
_RUNNING, _FAILURE, _SUCCESSFUL = "Running", "Failure", "Successful"


def after_run(
    before: Sequence[Condition], *, ok: bool, message: str, stats: Mapping[str, int], now: str
) -> list[Condition]:
    """Return the conditions after a run that ended at `now` (RFC 3339): Running, Failure and Successful."""
    result = {
        "ok": stats.get("ok", 0),
        "changed": stats.get("changed", 0),
        "failures": stats.get("failures", 0),
        "skipped": stats.get("skipped", 0),
        "completion": now,
    }
    if ok:
        ours = [
            _condition(_RUNNING, True, "Successful", "Awaiting next reconciliation", result),
            _condition(_FAILURE, False, "", ""),
            _condition(_SUCCESSFUL, True, "Successful", "Last reconciliation succeeded"),
        ]
    else:
        ours = [
            _condition(_RUNNING, False, "Failed", "Last reconciliation failed"),
            _condition(_FAILURE, True, "Failed", message, result),
            _condition(_SUCCESSFUL, False, "", ""),
        ]
    known = {condition.get("type"): condition for condition in before}
    for condition in ours:
        old = known.get(condition["type"], {})
        same = old.get("status") == condition["status"]
        condition["lastTransitionTime"] = old.get("lastTransitionTime", now) if same else now
    others = [condition for condition in before if condition.get("type") not in (_RUNNING, _FAILURE, _SUCCESSFUL)]
    return [*others, *ours]


def _condition(kind: str, holds: bool, reason: str, message: str, result: Mapping[str, Any] | None = None) -> Condition:
    condition = {"type": kind, "status": str(holds), "reason": reason, "message": message}
    return condition if result is None else {**condition, "ansibleResult": dict(result)}
