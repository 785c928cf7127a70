"""The plan for an invalid job: status and Event, and the deletion of its pods once it is suspended.

The order of the questions, and the policies, are those of a valid job. What differs is that only a record of the job
can be read: nothing is known of its replicas, so no pod is created. Of what it owns, only pods and the objects of an
active job are deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import adoption
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import job_record, managers
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    clean_pod_policy,
    suspension,
    ttl_after_finished,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    InvalidStatusBuilder,
    clip,
    has_finished,
    outcome,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import JobRecord
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import (
    IMMEDIATE,
    Deletion,
    Fact,
    Plan,
    presume,
)

_NOTHING = Observed()


def plan_invalid(
    resource: Mapping[str, Any],
    framework: Framework,
    problems: Sequence[str],
    now: datetime,
    observed: Observed = _NOTHING,
) -> Plan:
    """Report the errors once per edit. A running job keeps the pods of its last valid spec; a new job is Failed.

    Suspended, also by Kueue, it loses them like a valid job, and it is Failed if it is resumed with these errors. One
    that failed before it began has none: those that an operator with an older spec in its cache has created are
    deleted.
    ``observed`` is read for :func:`may_have_pods` only. A job that another controller runs is left alone.
    """
    if managers.names_another(resource, framework):
        return Plan()
    job = job_record.read(resource)
    report = InvalidStatusBuilder(job, now)
    if has_finished(job):
        return _finished(job, observed, report, now)
    errors = clip("; ".join(problems))
    has_begun = bool(job.status.get("startTime")) and outcome(job.status) is None
    was_suspended = suspension.is_recorded(job.status)
    began = _began_at(job, observed, was_suspended)
    if has_begun and job.run_policy.suspend and not began:
        return _suspended(job, errors, observed, report)
    if began:
        report.begun(began, was_suspended)
    if began or (has_begun and not was_suspended):
        report.errors(errors)
        report.waiting(f"the spec is invalid, and pods of the last valid spec stay: {errors}")
    else:
        report.failed(clip(f"{errors}; {managers.RECREATE}") if job.is_queued else errors)
    # recorded before they are deleted: a job without a beginning would fail once they are gone
    at_once = bool(began) or any(_left_over(job, observed))
    return _reported(job, observed, report, now, at_once=at_once)


def may_have_pods(resource: Mapping[str, Any]) -> bool:
    """Whether the plan for the job, if it is invalid, depends on its pods: they say when it began, if its status does
    not; one that is suspended loses them, and one that has failed; and of one that was suspended, they say whether it
    has been resumed."""
    return _may_have_pods(as_mapping(resource.get("status")), job_record.is_suspended(resource))


def _may_have_pods(status: Mapping[str, Any], suspend: bool) -> bool:
    is_recorded = bool(status.get("startTime")) or outcome(status) is not None
    loses_pods = suspend or clean_pod_policy.was_invalid_at_rest(status)
    return not is_recorded or loses_pods or suspension.is_recorded(status)


def _began_at(job: JobRecord, observed: Observed, was_suspended: bool) -> str:
    """When the first pod was created of a job whose status lacks that it has begun; "" where it lacks nothing.

    Its write has failed, or was deferred, and an edit has made the job invalid before the next one. ``Suspended`` is
    recorded only after the pods are deleted, so pods are newer.
    """
    if outcome(job.status) is not None or (job.status.get("startTime") and not was_suspended):
        return ""
    pods = [pod for pod in observed.pods if not (was_suspended and pod.deleting)]
    return min((pod.created for pod in pods if pod.created), default="")


def _left_over(job: JobRecord, observed: Observed) -> tuple[Sequence[Deletion], Sequence[Deletion]]:
    """The deletions of the pods of a job that was invalid at rest, and of its other objects."""
    if not clean_pod_policy.was_invalid_at_rest(job.status):
        return (), ()
    return adoption.all_deletions(observed), owned_objects.deletions_without_pods(observed)


def _finished(job: JobRecord, observed: Observed, report: InvalidStatusBuilder, now: datetime) -> Plan:
    """Over: an edit of it has no other effect than on its time to live."""
    left = ttl_after_finished.time_to_live(job, report.ended_at, now)
    if left is not None and left <= 0:
        return Plan(delete_job=True)
    pods, objects = _left_over(job, observed)
    deletions = (*pods, *objects)
    return Plan(
        deletions=deletions,
        requeue_after=IMMEDIATE if pods else left,
        presumes=presume({Fact.SPEC_IS_CURRENT: bool(deletions)}),
    )


def _suspended(job: JobRecord, errors: str, observed: Observed, report: InvalidStatusBuilder) -> Plan:
    """No pods: the queue or the administrator that has suspended the job does not wait until its errors are mended."""
    if first := suspension.first_step(job.status):
        return first
    reason = clip(f"the spec is invalid: {errors}")
    if reason != job.status.get("reason"):
        report.errors(errors)
    report.suspended()
    report.waiting(reason)
    report.phase(c.PHASE_SUSPENDED)
    report.no_replicas()
    gone = adoption.all_deletions(observed)
    others = Plan() if gone else Plan(deletions=owned_objects.deletions_without_pods(observed))
    return suspension.later_steps(gone, others, report)


def _reported(
    job: JobRecord, observed: Observed, report: InvalidStatusBuilder, now: datetime, *, at_once: bool
) -> Plan:
    """The plan of a job that runs on, or has just failed."""
    status = report.status()
    if status is None:
        return Plan()  # a job that runs on: it has not ended
    has_failed = report.state is not None
    left = ttl_after_finished.time_to_live(job, report.ended_at, now) if has_failed else None
    return Plan(
        status=status,
        events=report.events,
        requeue_after=IMMEDIATE if at_once else left,
        presumes=presume(
            {
                Fact.PODS_ARE_DELETED: has_failed and _may_have_pods(job.status, job.run_policy.suspend),
                Fact.IS_KEPT: suspension.survivors(job.status, observed),
            }
        ),
    )
