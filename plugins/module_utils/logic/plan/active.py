"""The plan of a job that is neither over nor suspended: has it just ended, and if not, what does it lack?"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import (
    batch_job,
    host_names,
    pod_group,
    spec_hash,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import PodContext
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_failed
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import at_rest, gang_standing, reporting
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanInputs
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    active_deadline,
    backoff_limit,
    crash_loops,
    denied_deployment,
    early_ends,
    failure,
    hidden_losses,
    losses,
    max_restarts_per_replica,
    pending_timeout,
    restart_counts,
    restart_job,
    restart_scope,
    restarts_within,
    settling,
    stalls,
    startup_policy,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import ReplicaActions
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.success import succeeded
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.situation import Decision, Situation, situation
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.writes import writes
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import batch_jobs, replica_statuses
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import StatusBuilder, clip
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import IMMEDIATE, Plan


def active(job: DLJob, framework: Framework, observed: Observed, report: StatusBuilder, inputs: PlanInputs) -> Plan:
    """The plan of an active ``job``; its status and Events go into ``report``."""
    observed = batch_jobs.remembered(job, observed)
    if batch_jobs.is_ahead(observed, inputs.now):
        return Plan(requeue_after=batch_jobs.POD_REQUEUE)
    observed, wait = early_ends.mark(job, framework, observed, inputs.now)
    if wait is not None:
        return Plan(requeue_after=wait)
    found = situation(job, framework, observed, report, inputs)
    if ended := _after_hidden_loss(found, report):
        return ended
    cluster = build_cluster_spec(job, framework, found.attempt)
    context = PodContext(
        framework,
        cluster,
        found.hashes,
        inputs.settings.cluster_domain,
        progress=inputs.settings.progress,
        replaceable_names=host_names.replaceable(job, framework, cluster),
    )
    if not found.was_running:
        reporting.ignored(job, context, report)
    reporting.unusual(job, framework, spec_hash.fingerprint(job, found.spec_hashes), report)
    if ended := _success(found, report):
        return ended
    decided = _decide(found, report)
    if ended := _failure(found, decided, report):
        return ended
    if decided.actions.begins:
        found = dataclasses.replace(found, completed={}, attempt=decided.actions.begins)
    _report(found, decided, report)
    return writes(found, decided, context, report)


def _record(
    found: Situation,
    report: StatusBuilder,
    counted: tuple[Mapping[str, int], Mapping[str, int]],
    *,
    final: bool = False,
) -> None:
    """Report the progress, with the restarts ``counted`` now."""
    launched = batch_jobs.write(found.launched, found.current.pods, final=final)
    report.progress(counted, found.completed, found.attempt, launched)


def _after_hidden_loss(found: Situation, report: StatusBuilder) -> Plan | None:
    """The plan for a success target that exited with 0 because it has lost a peer: it starts again."""
    job, current, last = found.job, found.current, found.lost.last
    hidden = hidden_losses.find(job, found.framework, current, last)
    if not hidden or not last:
        return None
    for pod in hidden:
        found.completed.get(pod.type, set()).discard(pod.index)
    others = losses.without(current, {pod.uid for pod in hidden})
    report.replicas(replica_statuses.count(job, others, found.completed))
    _record(found, report, (found.retries, found.ignored))
    early = tuple(pod for pod in current.pods if pod.ended_early and has_failed(pod))
    if early and found.lost.new:
        # a status that said that they had succeeded would keep their replicas from new pods
        report.losses(losses.write(last), found.lost.counts)
        return Plan(status=report.status(), events=report.events, requeue_after=IMMEDIATE)
    report.losses(losses.write(hidden_losses.noted(last, hidden)), found.lost.counts)
    report.restarting((*hidden, *early), [hidden_losses.explain(pod, last) for pod in hidden])
    deletions = tuple(batch_job.deletion(pod) for pod in (*hidden, *early))
    return Plan(deletions=deletions, status=report.status(), events=report.events, requeue_after=IMMEDIATE)


def _success(found: Situation, report: StatusBuilder) -> Plan | None:
    """The plan for a job whose success target has succeeded; ``None`` where it has not."""
    job, framework, current, excused = found.job, found.framework, found.current, found.excused
    if (
        not succeeded(job, current, found.completed)
        or failure.precedes_success(job, framework, current, excused)
        or settling.fails(job, framework, current, excused, found.now)
    ):
        return None
    counts = replica_statuses.count(job, current, found.completed)
    rest = settling.remaining(job, framework, current, found.going_on, found.now)
    if rest is not None:
        report.replicas(counts)
        _record(found, report, (found.retries, found.ignored))
        report.losses(losses.write(found.lost.last), found.lost.counts)
        reporting.phase(job, report, replica_statuses.all_up(job, counts), anew=False)
        report.waiting(settling.reason(job))
        return Plan(status=report.status(), events=report.events, requeue_after=rest)  # nothing starts again any more
    report.succeeded()
    report.replicas(replica_statuses.settled(job, counts))
    _record(found, report, restart_counts.made(job, current.pods, found.retries, found.ignored), final=True)
    return at_rest.end(job, framework, found.observed, report)


def _decide(found: Situation, report: StatusBuilder) -> Decision:
    """What the replicas need, without the creations that wait for others, for old pods or for the gang."""
    job, observed = found.job, found.observed
    policy = restart_scope if found.as_one else restart_job
    actions = policy.next_actions(job, found.undecided, found.progress, found.now)
    stall = _stalls(found, actions)
    if stall.restarting:
        actions = restart_job.all_replicas(found.progress, ())
    recent, escalation = _recent(found, actions, report)
    limited = actions.retries
    if escalation and not actions.begins:
        actions = restart_job.all_replicas(found.progress, actions.restarted)
    if any(deletion.uid == found.lost.new for deletion in actions.deletions):
        actions = _record_first(actions, found.lost.new)
    gang = pod_group.applicable(found.inputs.settings.gang, job, observed)
    standing = gang_standing.standing(gang, job, observed)
    waits = startup_policy.waits(job, found.framework, found.current, found.completed, gang is not None)
    if waits:
        held_back = {wait.type for wait in waits}
        starts = tuple(start for start in actions.starts if start.group.type not in held_back)
        actions = dataclasses.replace(actions, starts=starts)
    if observed.remaining and any(group.batch_job for group in job.groups):
        # the launcher of the attempt before would reach the new workers, which have the names of its own
        awaited = (*actions.awaited, *observed.remaining) if actions.starts else actions.awaited
        actions = dataclasses.replace(actions, starts=(), awaited=awaited)
    held_up = standing.problem if actions.starts else ""
    if held_up:
        actions = dataclasses.replace(actions, starts=())
    left = active_deadline.time_left(job, report.started, found.now)
    return Decision(actions, gang, standing, waits, held_up, left, limited, recent, escalation, stall)


def _stalls(found: Situation, actions: ReplicaActions) -> stalls.Stalls:
    """Whether the job stalls: not while a replica does not run, or restarts."""
    job, current = found.job, found.current
    if job.run_policy.stall_policy is None:
        return stalls.NONE
    counts = replica_statuses.count(job, current, found.completed)
    if actions.begins or actions.restarted or not replica_statuses.all_up(job, counts):
        return stalls.UNKNOWN
    return stalls.find(job, current, {} if found.is_new_spec else job.status, found.now)


def _recent(
    found: Situation, actions: ReplicaActions, report: StatusBuilder
) -> tuple[restarts_within.Recent, Failure | None]:
    """The recent restarts, and why they restart all replicas if they do."""
    within = found.job.run_policy.restarts_within
    if within is None:
        return restarts_within.NONE, None
    status = {} if found.is_new_spec else found.job.status
    pods, lost = found.current.pods, found.lost
    recent = restarts_within.find(pods, within, actions, lost, status, report.started, found.now)
    return recent, restarts_within.escalation(within, recent, pods, lost)


def _record_first(actions: ReplicaActions, uid: str) -> ReplicaActions:
    """``actions`` without the deletion of a pod, after which nothing would show its loss but the status."""
    deletions = tuple(deletion for deletion in actions.deletions if deletion.uid != uid)
    restarted = tuple(pod for pod in actions.restarted if pod.uid != uid)
    return dataclasses.replace(actions, deletions=deletions, restarted=restarted, wait=IMMEDIATE)


def _failure(found: Situation, decided: Decision, report: StatusBuilder) -> Plan | None:
    """The plan for a job that has failed, or is about to; ``None`` while it can still succeed."""
    job, current, lost, actions = found.job, found.current, found.lost, decided.actions
    fatal = losses.with_cause(lost, found.going_on, failure.find_failure(job, found.deciding, found.completed))
    over_limit = None if fatal else _over_limit(found, decided)
    if lost.unexplained is not None and not fatal and (over_limit or decided.escalation):
        return Plan(requeue_after=lost.unexplained)  # it may not count
    failed = (
        fatal
        or decided.stalls.failure
        or over_limit
        or pending_timeout.find_timeout(job, current, found.now)
        or active_deadline.overdue(job, decided.time_left, crash_loops.first(current, job.status, lost.uids))
    )
    if not failed:
        return None
    report.replicas(replica_statuses.count(job, current, found.completed))
    failures = found.retries if actions.begins else actions.retries  # what ends begins no attempt
    counted = restart_counts.made(job, current.pods, failures, actions.ignored)
    _record(found, report, counted, final=True)
    report.losses(losses.write(lost.last), lost.forgiven(counted[0], current.pods))
    report.recent_restarts(restarts_within.write(decided.recent))
    _report_stall(decided, report)
    report.failed(failed)
    return at_rest.end(job, found.framework, found.observed, report)


def _report_stall(decided: Decision, report: StatusBuilder) -> None:
    """Report whether the job stalls, and since when its replicas run."""
    if decided.stalls.is_known:
        report.stalled(decided.stalls.message)
    report.all_running(decided.stalls.running)


def _over_limit(found: Situation, decided: Decision) -> Failure | None:
    """The failure of a job that has restarted more often than it may."""
    job, pods, lost, stall = found.job, found.current.pods, found.lost, decided.stalls.restarting
    return (
        backoff_limit.exceeded(job, decided.limited, pods, lost, stall)
        or max_restarts_per_replica.over_limit(job, decided.limited, pods, lost)
        or restarts_within.exceeded(job, decided.recent, pods, lost, stall)
    )


def _report(found: Situation, decided: Decision, report: StatusBuilder) -> None:
    """Report how far the job is, and what it waits for."""
    job, current, lost, actions = found.job, found.current, found.lost, decided.actions
    counts = replica_statuses.count(job, current, found.completed)
    report.replicas(counts)
    _record(found, report, (actions.retries, actions.ignored))
    report.losses(losses.write(lost.last), lost.counts)
    recent = restarts_within.restarted(decided.recent) if decided.escalation else decided.recent
    report.recent_restarts(restarts_within.write(recent))
    for end in batch_jobs.new_restarts(found.launched, current.pods):
        report.restarted_by_batch_job(failure.describe_end(end))
    _report_stall(decided, report)
    if decided.escalation:
        report.restarting_all([decided.escalation])
    elif decided.stalls.restarting:
        report.restarting_all([Failure(c.REASON_STALLED, decided.stalls.restarting)])
    elif actions.begins:
        report.restarting_all([failure.explain(job, p) for p in reporting.causes(job, actions.restarted)])
    elif actions.restarted:
        restarted = sorted(actions.restarted, key=lambda pod: pod.uid in lost.uids)
        report.restarting(restarted, [failure.explain(job, p) for p in restarted])
    up = replica_statuses.all_up(job, counts) and not actions.begins
    if up and not found.was_running and job.run_policy.stall_policy and current.reports is None:
        report.event("Warning", c.EVENT_STALL_POLICY_IGNORED, stalls.IGNORED)
    reporting.phase(job, report, up, anew=bool(actions.begins) or (found.as_one and found.is_new_spec))
    reporting.wait(job, found.going_on, lost, report)
    if not report.reason:
        report.waiting(decided.stalls.message)
    if not report.reason and decided.held_up:
        if decided.standing.is_lasting and clip(decided.held_up) != job.status.get("reason"):
            report.event("Warning", c.EVENT_NOT_CREATED, decided.held_up)
        report.waiting(decided.held_up)
    if not report.reason:
        report.waiting(startup_policy.reason(decided.waits, job, current, found.completed))
    if not report.reason and (denied := denied_deployment.reason(found.observed)):
        if clip(denied) != job.status.get("reason"):
            report.event("Warning", c.EVENT_OBJECT_FAILED, denied)
        report.waiting(denied)
