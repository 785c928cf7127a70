"""What a reconcile writes into the Workload of a job, at most one step at a time.

Each step follows from the job's status and from the Workload, so that a reconcile that is killed between two of them
leaves nothing that the next one does not mend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.queueing import placement, turn
from ansible_collections.dljob.operator.plugins.module_utils.logic.queueing.workload import (
    ADMITTED,
    ANNOTATION_SUSPENDED,
    EVICTED,
    FINISHED,
    PODS_READY,
    QUOTA_RESERVED,
    REQUEUED,
    QuotaRequest,
    Workload,
    with_condition,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.conditions import NewCondition
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import outcome
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c

_REQUEUED_AT_ONCE = ("Preempted", "NodeFailures")
"""Reasons of evictions after which a job queues again at once; after the others Kueue decides when it does."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create the Workload; first look whether Kueue's own integration has made one."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Write the request into a Workload that holds no quota."""


@dataclass(frozen=True, slots=True)
class Prioritize:
    """Write the class of the priority, which may change at any time."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the Workload, and with it the reservation."""


@dataclass(frozen=True, slots=True)
class Place:
    """Read the flavors and write what the admission adds to the pods."""

    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Activate:
    """Let the Workload queue, or take it from the queue, for the user who resumes or suspends the job."""

    active: bool

    @property
    def patch(self) -> Mapping[str, Any]:
        mark = None if self.active else "true"
        return {"metadata": {"annotations": {ANNOTATION_SUSPENDED: mark}}, "spec": {"active": self.active}}


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write these fields of the Workload's status; ``None`` removes one."""

    fields: Mapping[str, Any]


Step = Create | Replace | Prioritize | Delete | Place | Activate | WriteStatus


@dataclass(frozen=True, slots=True)
class Seen:
    """The job's side, once the plan of a reconcile is carried out."""

    asked: QuotaRequest | None
    """``None`` for an invalid job."""
    status: Mapping[str, Any]
    suspend: bool
    """Whether the user suspends it."""
    has_deleted: bool
    """Whether this reconcile has deleted objects of it: a status that says that its pods are gone is older."""

    @property
    def ended(self) -> str | None:
        return outcome(self.status)

    def has(self, condition: str) -> bool:
        return conditions.is_condition_true(conditions.read_conditions(self.status), condition)


def next_step(seen: Seen, workload: Workload | None, now: str) -> Step | None:
    """The next step for a job at ``now`` (RFC 3339); ``None`` where there is none."""
    if workload is None:
        return _begin(seen)
    if workload.deleting or workload.has(FINISHED):
        return None
    if seen.ended is not None:
        # its pods use the quota until they are cleaned up
        return None if seen.status.get("phase") == c.PHASE_CLEANUP else _finish(workload, seen, now)
    asked = seen.asked
    if asked is None:
        return None
    if seen.suspend == workload.active and (seen.suspend or workload.suspended):
        return Activate(not seen.suspend)
    has_stopped = seen.has(c.CONDITION_SUSPENDED) and not seen.has_deleted
    if workload.hash != asked.hash:
        if not workload.holds_quota:
            return Replace()
        return Delete() if has_stopped else None
    if workload.priority_class != (asked.priority_class or asked.pod_priority_class):
        return Prioritize()
    if workload.has(EVICTED):
        return _release(workload, now) if has_stopped and workload.holds_quota else None
    if not workload.is_admitted:
        return None
    if placement.stored(workload) is None:
        return Place(placement.flavors_of(workload))
    return _readiness(workload, is_running=seen.has(c.CONDITION_RUNNING), now=now)


def _begin(seen: Seen) -> Create | None:
    may_queue = seen.asked is not None and not turn.problem_of(seen.asked)
    return Create() if may_queue and seen.ended is None and not seen.suspend else None


def _finish(workload: Workload, seen: Seen, now: str) -> WriteStatus:
    message = str(seen.status.get("reason") or "The job has finished")
    new = NewCondition(FINISHED, str(seen.ended), message)
    return WriteStatus({"conditions": with_condition(workload.conditions, new, now)})


def _release(workload: Workload, now: str) -> WriteStatus:
    """Give the quota back: the pods are gone."""
    evicted = workload.condition(EVICTED)
    reason, message = str(evicted.get("reason") or EVICTED), str(evicted.get("message") or "")
    changes = [
        NewCondition(REQUEUED, reason, message, "True" if reason in _REQUEUED_AT_ONCE else "False"),
        NewCondition(QUOTA_RESERVED, "Pending", message, "False"),
    ]
    if workload.condition(ADMITTED):
        changes.append(NewCondition(ADMITTED, "NoReservation", "The job has no quota", "False"))
    if workload.has(PODS_READY):
        changes.append(NewCondition(PODS_READY, "WaitForStart", "The job has no pods", "False"))
    found: list[Mapping[str, Any]] = list(workload.conditions)
    for change in changes:
        found = with_condition(found, change, now)
    return WriteStatus({"conditions": found, "admission": None})


def _readiness(workload: Workload, *, is_running: bool, now: str) -> WriteStatus | None:
    """Whether the pods are ready, for ``waitForPodsReady`` of Kueue."""
    if workload.has(PODS_READY) == is_running:
        return None
    before = workload.condition(PODS_READY).get("reason")
    if is_running:
        reason = "Recovered" if before in ("WaitForRecovery", "Recovered") else "Started"
        new = NewCondition(PODS_READY, reason, "All replicas run")
    else:
        new = NewCondition(PODS_READY, "WaitForRecovery", "A replica has failed, and starts again", "False")
    return WriteStatus({"conditions": with_condition(workload.conditions, new, now)})
