"""From a plan and the result of applying it to the status, the Events and the next reconcile. Pure.

The plan has a status for the case that every write succeeds. Only this module changes it, in one order: a permanent
refusal fails the job; a refusal for now, or a name that is taken, is a reason in the status and is tried again; a
refused object that the training does not need is a reason and nothing more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import batch_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import managers
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    creation_event,
    initial_status,
    refusal,
    termination,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.conditions import read_conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    StatusBuilder,
    clip,
    has_finished,
    outcome,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared import rbac
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import (
    ApplyResult,
    Conclusion,
    Resolution,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import IMMEDIATE, Plan

RETRY_REQUEUE = 5.0
"""Seconds until the next try of a write that Kubernetes refused for now: quota, or a name whose object terminates."""
LONGEST_REQUEUE = 60.0
"""Seconds until the next try of a job whose objects a quota or an admission rule has denied, or whose names somebody
else has had, for ten minutes or more."""
CACHE_REQUEUE = 1.0
"""Seconds until the next reconcile of a job of which the cache is behind; the events that it lacks trigger it too."""
PREDECESSOR_REQUEUE = 1.0
"""Seconds until the next try where the garbage collector has yet to remove objects of a deleted job of this name."""
CREATING = "creating pods: "
"""How the reason of a job that takes several reconciles to create begins."""
PREDECESSOR = (
    "objects of the deleted job of this name are still there; new ones follow once Kubernetes has removed them"
)
"""One sentence, however many objects they are."""
_MISSED = "; if it does not within a minute, it has missed that the job was deleted: delete "
_UNWATCHED = tuple(f"{kind.kind}/" for kind in OWNED_KINDS.values() if not (kind.watched or kind.is_route))
"""The beginnings of the names of objects that the operator may have no right to delete."""


def planned(plan: Plan) -> Conclusion:
    """The conclusion where every write of ``plan`` succeeds."""
    return Conclusion(plan.status, plan.events, plan.requeue_after)


def conclude(job: DLJob, resolution: Resolution, result: ApplyResult, now: datetime) -> Conclusion:
    """What follows for ``job`` from applying the plan of ``resolution``."""
    concluded = _conclude(job, resolution, result, now)
    if result.refused or concluded.continues or resolution.problems:
        return concluded
    created = creation_event.of_result(job, resolution.plan, result)
    if not created:
        return concluded
    return dataclasses.replace(concluded, events=(*created, *creation_event.without(concluded.events)))


def _conclude(job: DLJob, resolution: Resolution, result: ApplyResult, now: datetime) -> Conclusion:
    concluded = _sliced(planned(resolution.plan), job, resolution.plan, result)
    for note in resolution.notes:
        concluded = _with_reason(concluded, job.status, clip(rbac.explain_denial(note.message)), note.reason)
    if resolution.problems:
        concluded = mark_retry(concluded, job, resolution.problems)
        concluded = _requeue(concluded, resolution.requeue_after)
    if result.refused:
        return mark_failed(job, result.refused, now)
    held_up = [*result.taken, *result.postponed]
    if held_up or result.predecessors:
        problems = [*refusal.distinct(held_up), *_predecessors(result.predecessors)]
        concluded = mark_retry(concluded, job, problems)
    elif result.optional_failures:
        concluded = mark_degraded(concluded, job, result.optional_failures)
    if result.waiting:
        concluded = _mark_waiting(concluded, job, result.waiting)
    if result.predecessors:
        requeue = min(PREDECESSOR_REQUEUE, concluded.requeue_after or PREDECESSOR_REQUEUE)
        return dataclasses.replace(concluded, requeue_after=requeue, continues=False)
    if held_up or result.waiting:
        # not sooner than this, even if the plan asks for an immediate requeue: Kubernetes would refuse it again
        retry = _denied_requeue(job, now) if result.denied else RETRY_REQUEUE
        requeue = min(retry, concluded.requeue_after or retry)
        message = "; ".join(held_up[:3])
        return dataclasses.replace(concluded, requeue_after=requeue, message=message, continues=False)
    if result.optional_failures and result.denied:
        concluded = _requeue(concluded, _denied_requeue(job, now))
    return _awaiting_cache(concluded) if _deletes_nothing(resolution.plan, result) else concluded


def conclude_invalid(
    status: Mapping[str, Any], problems: Sequence[str], planned: Plan, result: ApplyResult
) -> Conclusion:
    """What follows from applying ``planned`` for a job with this ``status`` and ``problems``, which cannot be parsed.

    Only one that is suspended or has failed has writes, the deletions of its pods: they are repeated until all are
    accepted. The reason of a failure stays.
    """
    concluded = Conclusion(planned.status, planned.events, planned.requeue_after, "; ".join(problems))
    if result.postponed:
        denied = refusal.distinct(result.postponed)[:3]
        reason = clip(rbac.explain_denial("; ".join([*denied, *problems])))
        if outcome(status) is None:
            concluded = _with_reason(concluded, status, reason, c.EVENT_NOT_DELETED)
        return dataclasses.replace(concluded, requeue_after=RETRY_REQUEUE, message=reason)
    if _deletes_nothing(planned, result):
        return _awaiting_cache(concluded)
    if planned.is_partial or result.is_partial:
        return dataclasses.replace(concluded, requeue_after=IMMEDIATE, continues=True)
    return concluded


def _deletes_nothing(plan: Plan, result: ApplyResult) -> bool:
    """Whether everything that ``plan`` deletes was gone, and it wrote nothing else: the next reconcile with the same
    cache would plan these deletions again."""
    return bool(plan.deletions) and not result.changed


def _awaiting_cache(concluded: Conclusion) -> Conclusion:
    wait = max(concluded.requeue_after or 0.0, CACHE_REQUEUE)
    return dataclasses.replace(concluded, requeue_after=wait, continues=False)


def _mark_waiting(concluded: Conclusion, job: DLJob, names: Sequence[str]) -> Conclusion:
    """Objects with these ``names`` terminate: a reason, unless there is another one, and no Event.

    A finished job creates nothing that somebody waits for, and a failed one keeps the reason of its failure.
    """
    if has_finished(job):
        return concluded
    status = {**(job.status if concluded.status is None else concluded.status)}
    events = creation_event.without(concluded.events)
    if not status.get("reason") or str(status["reason"]).startswith(CREATING):
        status["reason"] = termination.waiting(names, str(job.status.get("reason") or ""))
    return dataclasses.replace(concluded, status=None if status == job.status else status, events=events)


def _predecessors(names: Sequence[str]) -> list[str]:
    """What the job waits for, where objects of a deleted job have these ``names``; and what its user may have to do."""
    unwatched = sorted(name for name in names if name.startswith(_UNWATCHED))
    return [PREDECESSOR + (_MISSED + ", ".join(unwatched) if unwatched else "")] if names else []


def _sliced(concluded: Conclusion, job: DLJob, plan: Plan, result: ApplyResult) -> Conclusion:
    """Continue immediately where the plan or its writes were cut.

    Until the last slice, which has the Event on the creation, the reason reports the progress, unless there is another.
    """
    if not (plan.is_partial or result.is_partial):
        return concluded
    status = {**(job.status if concluded.status is None else concluded.status)}
    if plan.pods and (not status.get("reason") or str(status["reason"]).startswith(CREATING)):
        created = sum(1 for _ in result.created_of("Pod", batch_job.KIND))
        status["reason"] = f"{CREATING}{job.total - plan.missing_pods + created} of {job.total} are created"
    return dataclasses.replace(
        concluded,
        status=None if status == job.status else status,
        events=creation_event.without(concluded.events),
        requeue_after=IMMEDIATE,
        continues=True,
    )


def _denied_requeue(job: DLJob, now: datetime) -> float:
    """A tenth of the time since the job's last change of state, such as a restart, within the bounds: the longer it is
    denied, the rarer the tries."""
    changes = (condition.get("lastTransitionTime") for condition in read_conditions(job.status))
    times = [job.status.get("startTime"), *changes]
    waited = min((seconds for time in times if (seconds := clock.seconds_since(time, now)) is not None), default=0.0)
    return min(max(RETRY_REQUEUE, waited / 10), LONGEST_REQUEUE)


def defer(concluded: Conclusion) -> Conclusion:
    """The next reconcile commits the status; the first change of a pod triggers it, or a second's delay."""
    return _requeue(dataclasses.replace(concluded, status=None, events=()), initial_status.LATEST)


def mark_failed(job: DLJob, problems: Sequence[str], now: datetime) -> Conclusion:
    """Kubernetes refused an object permanently: the job fails with its message, and what was created is deleted."""
    builder = StatusBuilder(job, now)
    builder.taken_up()
    hint = [managers.RECREATE] if job.is_queued else []
    builder.failed(Failure(c.REASON_REFUSED, "; ".join([*problems[:3], *hint])))
    builder.phase(c.PHASE_FAILED)
    return Conclusion(builder.status(), builder.events, IMMEDIATE, "; ".join(problems))


def mark_retry(concluded: Conclusion, job: DLJob, problems: Sequence[str]) -> Conclusion:
    """Kubernetes refused an object for now: reason and Event. The same refusal again changes and writes nothing.

    The status of a failed job keeps the reason of its failure: nothing would restore it after the next try.
    """
    if has_finished(job) and outcome(job.status) == c.STATE_FAILED:
        return concluded
    events = creation_event.without(concluded.events)
    reason = clip(rbac.explain_denial("; ".join(problems[:3])))
    return _with_reason(dataclasses.replace(concluded, events=events), job.status, reason, c.EVENT_NOT_CREATED)


def mark_degraded(concluded: Conclusion, job: DLJob, problems: Sequence[str]) -> Conclusion:
    """Kubernetes refused an object that the training does not need: reason and Event, and the job goes on.

    The status of a failed job keeps the reason of its failure, which matters more.
    """
    if c.STATE_FAILED in (outcome(job.status), outcome(concluded.status or {})):
        return concluded
    return _with_reason(
        concluded, job.status, clip(rbac.explain_denial("; ".join(problems[:3]))), c.EVENT_OBJECT_FAILED
    )


def _with_reason(concluded: Conclusion, current: Mapping[str, Any], reason: str, event: str) -> Conclusion:
    """``current`` is the status of the job."""
    before = str(current.get("reason") or "")
    if refusal.is_same(before, reason):
        reason = before
    status = {**(current if concluded.status is None else concluded.status), "reason": reason}
    events = concluded.events
    if reason != before:
        events += (EventNote("Warning", event, reason),)
    return dataclasses.replace(concluded, status=None if status == current else status, events=events)


def _requeue(concluded: Conclusion, seconds: float | None) -> Conclusion:
    """Requeue after ``seconds`` at the latest."""
    waits = [wait for wait in (concluded.requeue_after, seconds) if wait is not None]
    return dataclasses.replace(concluded, requeue_after=min(waits, default=None))
