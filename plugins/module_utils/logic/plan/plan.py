"""One reconcile as a function: from the job, its framework, what is there and the time, to what is to be done.

Pure. The order of the questions is the life of a job: is it ours, is it over, is it suspended, has it just ended, and
only then which pods it lacks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import (
    batch_job,
    host_names,
    owned_objects,
    pod_group,
    services,
    shared_env_configmap,
    spec_hash,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import (
    CLUSTER_DOMAIN,
    PodContext,
    build_pod,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import SpecHashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import adoption, pod_ends
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import is_done
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import managers
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import gang_standing, ignored_settings
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    active_deadline,
    backoff_limit,
    clean_pod_policy,
    crash_loops,
    creation_event,
    denied_deployment,
    failure,
    force_delete_after,
    hidden_losses,
    losses,
    max_restarts_per_replica,
    pending_timeout,
    pod_creation,
    restart_counts,
    restart_job,
    restart_scope,
    service_scope,
    settling,
    slices,
    startup_events,
    startup_policy,
    suspension,
    termination,
    ttl_after_finished,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import Losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import (
    Progress,
    ReplicaActions,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.success import succeeded, unfinished
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import (
    batch_jobs,
    conditions,
    replica_statuses,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import completed as completed_
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import retries_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    StatusBuilder,
    clip,
    has_finished,
    outcome,
    starts_after_edit,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import GangScheduler
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Plan, PodToCreate

IMMEDIATE = 0.0
"""Seconds until the next look where a step of this one has to be through first."""


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What the operator sets for all jobs."""

    cluster_domain: str = CLUSTER_DOMAIN
    largest_slice: int | None = None
    """How many pods one plan creates at most, and how many objects it deletes; ``None`` for all."""
    gang: GangScheduler | None = None
    """The scheduler that starts the pods of a job together."""


def plan(
    job: DLJob, framework: Framework, observed: Observed, now: datetime, settings: PlanSettings = PlanSettings()
) -> Plan:
    """What to do for ``job`` at ``now``. With nothing to do the plan is empty: no write, no event."""
    if not managers.is_ours(job):
        return Plan()
    whole = _plan(service_scope.settled(job, observed), framework, observed, Surroundings(now, settings))
    return slices.cut_deletions(whole, settings.largest_slice)


def _plan(job: DLJob, framework: Framework, observed: Observed, surroundings: Surroundings) -> Plan:
    now = surroundings.now
    report = StatusBuilder(job, now)
    if has_finished(job):
        return _finished(job, framework, observed, report, now)
    _report_created_pods(job, observed, report)
    if job.run_policy.suspend:
        return _suspended(job, framework, observed, report)
    active = _active(job, framework, observed, report, surroundings)
    return dataclasses.replace(active, presumes_kept=suspension.survivors(job.status, observed))


def _objects_at_rest(job: DLJob, framework: Framework) -> tuple[Mapping[str, Any], ...]:
    """The objects that the framework's hook wants for ``job`` while it is suspended, or once it is finished."""
    if framework.hooks.objects is None:
        return ()
    return owned_objects.at_rest(owned_objects.build(job, framework, build_cluster_spec(job, framework)))


def _finished(job: DLJob, framework: Framework, observed: Observed, report: StatusBuilder, now: datetime) -> Plan:
    """Over: clean up once, then only wait for the end of its time to live."""
    left = ttl_after_finished.time_to_live(job, report.completed_at, now)
    has_succeeded = outcome(job.status) == c.STATE_SUCCEEDED
    if left is not None and left <= 0:
        wait = clean_pod_policy.sidecar_period(observed, report.completed_at, now) if has_succeeded else None
        return Plan(delete_job=True) if wait is None else Plan(status=report.status(), requeue_after=wait)
    objects = _objects_at_rest(job, framework)
    wanted_at_rest = () if clean_pod_policy.leaves_nothing(job) else objects
    kept = owned_objects.keys_of_job(wanted_at_rest)
    surplus = owned_objects.surplus(wanted_at_rest, observed)
    rights = owned_objects.revocable(objects)
    hosts = (
        _hosts_in_reach(objects, observed) if clean_pod_policy.keeps(job, "ConfigMap") else ()
    )  # else the list is deleted
    wait = clean_pod_policy.grace_period(job, framework, observed, report.completed_at, now) if has_succeeded else None
    cleanup_targets = clean_pod_policy.cleanup_targets(job, observed, kept) if wait is None else ()
    deletions = tuple(dict.fromkeys((*cleanup_targets, *surplus)))
    if clean_pod_policy.is_clean(job, observed, kept):
        report.phase(_last_phase(outcome(job.status)))
    if has_succeeded:
        report.waiting("")  # a message about an object that was refused
    # what Kubernetes refused it would refuse again
    wanted = () if clean_pod_policy.is_refused(job) else _living_on(objects)
    return Plan(
        deletions=deletions,
        ensured_objects=(
            # a request may fail, so each plan revokes the launcher's rights while a pod terminates
            *(rights if cleanup_targets or hosts or _terminates(observed) else ()),
            *hosts,
            *_lacking(wanted, observed),
        ),
        routes=owned_objects.unwatched(wanted),
        stale_routes=_services(surplus),
        status=report.status(),
        requeue_after=_soonest(min((w for w in (wait, left) if w is not None), default=None), deletions),
        presumes_running=clean_pod_policy.running_again(job, observed) if cleanup_targets else (),
        presumes_unstarted=clean_pod_policy.presumed_unstarted(job, observed) if cleanup_targets else (),
        presumes_current_spec=bool(cleanup_targets) and starts_after_edit(job.status),
    )


def _hosts_in_reach(
    objects: Sequence[owned_objects.Manifest], observed: Observed
) -> tuple[owned_objects.Manifest, ...]:
    """The list of hosts without any, where it still has workers: then the rights in them may not have been revoked.

    ``objects`` are those at rest.
    """
    return owned_objects.changed(objects, observed) if owned_objects.revocable(objects) else ()


def _living_on(objects: Sequence[owned_objects.Manifest]) -> tuple[owned_objects.Manifest, ...]:
    return tuple(x for x in objects if owned_objects.lives_with_job(x))


def _lacking(wanted: Sequence[owned_objects.Manifest], observed: Observed) -> tuple[owned_objects.Manifest, ...]:
    return (*owned_objects.missing(wanted, observed), *owned_objects.changed(wanted, observed))


def _terminates(observed: Observed) -> bool:
    return any(pod.deleting for pod in observed.pods)


def _services(deletions: Sequence[Deletion]) -> tuple[str, ...]:
    return tuple(deletion.name for deletion in deletions if deletion.kind == "Service")


def _suspended(job: DLJob, framework: Framework, observed: Observed, report: StatusBuilder) -> Plan:
    """No pods, no clock: the job waits for somebody to resume it."""
    if suspension.has_completed(job.status):
        return Plan(status=suspension.without_completed(job.status), requeue_after=IMMEDIATE)
    report.suspended()
    report.waiting(job.held)
    report.phase(c.PHASE_SUSPENDED)
    report.replicas(replica_statuses.count(job, Observed(), {}))
    gone = adoption.all_deletions(observed)
    objects = _objects_at_rest(job, framework)
    surplus = owned_objects.surplus(objects, observed)
    rights = owned_objects.revocable(objects)
    hosts = _hosts_in_reach(objects, observed)
    planned = Plan(
        # as in v1 not the names of single replicas; the others stay, and with them the job's scope
        deletions=(*gone, *surplus, *services.of_replicas(job, observed)),
        ensured_objects=(*rights, *hosts) if gone or hosts or _terminates(observed) else (),
        presumes_current_spec=bool(gone),
    )
    # Kueue gives the quota away with the status: not before the API server has accepted all deletions
    if gone:
        return dataclasses.replace(planned, requeue_after=IMMEDIATE)
    status = report.status()
    return dataclasses.replace(planned, status=status, events=report.events, presumes_known_pods=status is not None)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a plan depends on besides the job and its objects."""

    now: datetime
    settings: PlanSettings


def _active(
    job: DLJob, framework: Framework, observed: Observed, report: StatusBuilder, surroundings: Surroundings
) -> Plan:
    observed = batch_jobs.remembered(job, observed)
    if batch_jobs.is_ahead(observed, surroundings.now):
        return Plan(requeue_after=batch_jobs.POD_REQUEUE)
    spec_hashes = spec_hash.spec_hashes(job)
    changed = report.forget_progress(spec_hash.fingerprint(job, spec_hashes))
    as_one = restart_scope.applies_to(job)
    attempt = 0 if changed else restart_scope.attempt_of(job.status)
    hashes = spec_hashes
    if not as_one:
        attempt = restart_job.current_attempt(observed, spec_hashes, attempt)
        hashes = spec_hashes.of_attempt(attempt)
    current = _of_this_spec(job, observed, hashes)
    report.taken_up(min((pod.created for pod in current.pods if pod.created), default=""))
    if changed:
        report.respecified(restarts=len(current.pods) < len(observed.pods) or bool(job.status.get("completed")))
    retries = {} if changed else batch_jobs.counted(job)
    launched = {} if changed else batch_jobs.read(job.status)
    ignored = {} if changed else retries_of(job, "ignoredRetries")
    completed = {} if changed else _completed_of(job)
    if as_one:
        attempt = restart_scope.current_attempt(current, attempt)
        current = restart_scope.of_this_attempt(current, attempt)
    for pod in current.pods:
        if is_done(pod):
            completed.setdefault(pod.type, set()).add(pod.index)
    going_on = unfinished(current, completed)
    lost = losses.find(job, current, going_on, {} if changed else job.status, surroundings.now)
    hidden = hidden_losses.find(job, framework, current, lost.last)
    if hidden and lost.last:
        for pod in hidden:
            completed.get(pod.type, set()).discard(pod.index)
        others = losses.without(current, {pod.uid for pod in hidden})
        report.replicas(replica_statuses.count(job, others, completed))
        report.progress((retries, ignored), completed, attempt, batch_jobs.write(launched, current.pods))
        report.losses(losses.write(lost.last), lost.counts)
        report.restarting(hidden, [hidden_losses.explain(pod, lost.last) for pod in hidden])
        deletions = tuple(batch_job.deletion(pod) for pod in hidden)
        return Plan(deletions=deletions, status=report.status(), events=report.events, requeue_after=IMMEDIATE)
    excused = losses.without(going_on, lost.uids)
    deciding = losses.without(excused, lost.undecided)
    cluster = build_cluster_spec(job, framework, attempt)
    replaceable = host_names.replaceable(job, framework, cluster)
    domain = surroundings.settings.cluster_domain
    context = PodContext(framework, cluster, hashes, domain, replaceable_names=replaceable)
    is_running = conditions.is_condition_true(conditions.read_conditions(job.status), c.CONDITION_RUNNING)
    if not is_running:
        _report_ignored(job, context, report)

    has_ended_well = succeeded(job, current, completed) and not (
        failure.precedes_success(job, framework, current, excused)
        or settling.fails(job, framework, current, excused, surroundings.now)
    )
    rest = settling.remaining(job, framework, current, going_on, surroundings.now) if has_ended_well else None
    if rest is not None:
        counts = replica_statuses.count(job, current, completed)
        report.replicas(counts)
        report.progress((retries, ignored), completed, attempt, batch_jobs.write(launched, current.pods))
        report.losses(losses.write(lost.last), lost.counts)
        _report_phase(job, report, replica_statuses.all_up(job, counts), anew=False)
        report.waiting(settling.reason(job))
        return Plan(status=report.status(), events=report.events, requeue_after=rest)  # nothing starts again any more
    if has_ended_well:
        report.succeeded()
        report.replicas(replica_statuses.settled(job, replica_statuses.count(job, current, completed)))
        counted = restart_counts.made(job, current.pods, retries, ignored)
        report.progress(counted, completed, attempt, batch_jobs.write(launched, current.pods, final=True))
        return _end(job, framework, observed, report)
    policy = restart_scope if as_one else restart_job
    progress = Progress(hashes, retries, completed, attempt, changed, ignored, lost.uids, lost.undecided)
    actions = policy.next_actions(job, _undecided(observed, current, going_on), progress, surroundings.now)
    if any(deletion.uid == lost.new for deletion in actions.deletions):
        actions = _record_first(actions, lost.new)
    gang = pod_group.applicable(surroundings.settings.gang, job, observed)
    standing = gang_standing.standing(gang, job, observed)
    waiting = startup_policy.waits(job, framework, current, completed, gang is not None)
    if waiting:
        held_back = {wait.type for wait in waiting}
        starts = tuple(start for start in actions.starts if start.group.type not in held_back)
        actions = dataclasses.replace(actions, starts=starts)
    if observed.remaining and any(group.batch_job for group in job.groups):
        # the launcher of the attempt before would reach the new workers, which have the names of its own
        awaited = (*actions.awaited, *observed.remaining) if actions.starts else actions.awaited
        actions = dataclasses.replace(actions, starts=(), awaited=awaited)
    held_up = standing.problem if actions.starts else ""
    if held_up:
        actions = dataclasses.replace(actions, starts=())
    left = active_deadline.time_left(job, report.started, surroundings.now)
    job_failure = (
        losses.with_cause(lost, going_on, failure.find_failure(job, deciding, completed))
        or backoff_limit.exceeded(job, actions.retries, current.pods, lost)
        or max_restarts_per_replica.over_limit(job, actions.retries, current.pods, lost)
        or pending_timeout.find_timeout(job, current, surroundings.now)
        or active_deadline.overdue(job, left, crash_loops.first(current, job.status, lost.uids))
    )
    if job_failure:
        report.replicas(replica_statuses.count(job, current, completed))
        failures = retries if actions.begins else actions.retries  # what ends begins no attempt
        counted = restart_counts.made(job, current.pods, failures, actions.ignored)
        report.progress(counted, completed, attempt, batch_jobs.write(launched, current.pods, final=True))
        report.losses(losses.write(lost.last), lost.forgiven(counted[0], current.pods))
        report.failed(job_failure)
        return _end(job, framework, observed, report)

    if actions.begins:
        completed, attempt = {}, actions.begins
    counts = replica_statuses.count(job, current, completed)
    report.replicas(counts)
    counted = actions.retries, actions.ignored
    report.progress(counted, completed, attempt, batch_jobs.write(launched, current.pods))
    report.losses(losses.write(lost.last), lost.counts)
    for end in batch_jobs.new_restarts(launched, current.pods):
        report.restarted_by_batch_job(failure.describe_end(end))
    if actions.begins:
        report.restarting_all([failure.explain(job, p) for p in _causes(job, actions.restarted)])
    elif actions.restarted:
        restarted = sorted(actions.restarted, key=lambda pod: pod.uid in lost.uids)
        report.restarting(restarted, [failure.explain(job, p) for p in restarted])
    up = replica_statuses.all_up(job, counts) and not actions.begins
    _report_phase(job, report, up, anew=bool(actions.begins) or (as_one and changed))
    _report_wait(job, going_on, lost, report)
    if not report.reason and held_up:
        if standing.is_lasting and clip(held_up) != job.status.get("reason"):
            report.event("Warning", c.EVENT_NOT_CREATED, held_up)
        report.waiting(held_up)
    if not report.reason:
        report.waiting(startup_policy.reason(waiting, job, current, completed))
    if not report.reason and (denied := denied_deployment.reason(observed)):
        if clip(denied) != job.status.get("reason"):
            report.event("Warning", c.EVENT_OBJECT_FAILED, denied)
        report.waiting(denied)
    terminating = (*observed.pods, *(pod for pod in observed.remaining if pod.deleting))
    forced = force_delete_after.due(job, terminating, surroundings.now)
    if not forced:  # else the state of their nodes decides what to report
        _report_terminating(job, terminating, actions.awaited, report, surroundings.now)
    starts = slices.first_starts(actions.starts, surroundings.settings.largest_slice)
    is_partial = len(starts) < len(actions.starts)
    cluster = {**cluster, "attempt": attempt}
    shared, config_maps = shared_env_configmap.due(job, framework.hooks.environment, cluster, observed, bool(starts))
    context = dataclasses.replace(context, cluster=cluster, shared=shared, gang=gang, traits=standing.traits)
    pods = tuple(_build_replica(job, start, context) for start in starts)
    if is_running and starts:
        _report_ignored(job, dataclasses.replace(context, shared=None, gang=None, traits=None), report)
    missing_services = services.missing(job, observed)
    made_services = slices.first_services(missing_services, surroundings.settings.largest_slice)
    is_partial = is_partial or len(made_services) < len(missing_services)
    objects: tuple[owned_objects.Manifest, ...] = ()
    if framework.hooks.objects:
        objects = owned_objects.build(job, framework, {**cluster, **replica_statuses.present(job, current)})
    group = None
    after = startup_policy.types_after_gang(waiting)
    if gang and gang.is_native:
        if standing.is_wanted and standing.traits:
            group = pod_group.build_native(job, observed, after, completed, standing.traits)
        if group and not pods and not report.reason:
            report.waiting(gang_standing.silence(gang, job, observed, group, surroundings.now))
    elif gang:
        group = pod_group.build(job, gang, observed, after, completed)
    if group:
        objects = (*objects, group)
    missing, changed_objects = owned_objects.missing(objects, observed), owned_objects.changed(objects, observed)
    # an object that the training does not need must exist at its start too, so that its errors are seen then
    needed = missing if not observed.pods else tuple(x for x in missing if not owned_objects.lives_with_job(x))
    # a group that grows: before that its scheduler would start the new pods one by one
    grown = tuple(x for x in changed_objects if x is group)
    made_first = (*owned_objects.made_with_pods(objects), *needed, *config_maps, *grown) if pods else ()
    unsettled = (*missing, *config_maps, *changed_objects)
    later = tuple(x for x in owned_objects.with_rights(objects, unsettled) if not any(x is y for y in made_first))
    surplus = owned_objects.surplus(objects, observed)
    if pods and not is_partial:
        launchers = [pod["metadata"]["name"] for pod in pods if pod["kind"] == batch_job.KIND]
        names = _created_so_far(job, current, starts, pods)
        report.event("Normal", c.EVENT_CREATED, creation_event.text(job, names, launchers))
    wait = IMMEDIATE if is_partial else _soonest(actions.wait, actions.deletions)
    checks = (
        termination.next_check(terminating, actions.awaited, surroundings.now),
        force_delete_after.next_check(job, terminating, surroundings.now),
        pending_timeout.next_check(job, current, surroundings.now),
        startup_events.next_check(job, current, surroundings.now),
        pod_creation.next_check(current, surroundings.now),
        gang_standing.next_check(gang, job, observed, surroundings.now),
        standing.wait,
    )
    waits = [w for w in (wait, left, lost.wait, *checks) if w is not None]
    return Plan(
        auxiliary_objects=made_first,
        services=tuple(services.build(job, framework, cluster, one) for one in made_services),
        pods=pods,
        deletions=(
            *actions.deletions,
            *forced,
            *surplus,
            *services.surplus(job, observed),
            *(() if pods else shared_env_configmap.surplus(job, observed)),
        ),
        ensured_objects=later,
        routes=owned_objects.unwatched(objects),
        stale_routes=_services(surplus),
        status=report.status(),
        events=report.events,
        requeue_after=min(waits, default=None),
        missing_pods=len(actions.starts),
        is_partial=is_partial,
        presumes_deleted_pods=bool(actions.begins) and not actions.restarted,
        presumes_ended_launchers=_lost_launchers(job, observed) if starts else (),
        presumes_current_spec=bool(actions.deletions) and _has_other_pods(job, observed, spec_hashes),
        still_used=standing.still_used,
    )


def _record_first(actions: ReplicaActions, uid: str) -> ReplicaActions:
    """``actions`` without the deletion of a pod, after which nothing would show its loss but the status."""
    deletions = tuple(deletion for deletion in actions.deletions if deletion.uid != uid)
    restarted = tuple(pod for pod in actions.restarted if pod.uid != uid)
    return dataclasses.replace(actions, deletions=deletions, restarted=restarted, wait=IMMEDIATE)


def _report_ignored(job: DLJob, context: PodContext, report: StatusBuilder) -> None:
    """Report what the operator ignores of the templates: until the job runs, and with each pod created later."""
    ignored = ignored_settings.find(job, context)
    report.ignored_settings(ignored, ignored_settings.message(ignored))


def _build_replica(job: DLJob, start: PodToCreate, context: PodContext) -> Mapping[str, Any]:
    """The pod of a replica, or the Job that runs it."""
    pod = build_pod(job, start, context)
    return batch_job.wrap(job, pod) if start.group.batch_job else pod


def _end(job: DLJob, framework: Framework, observed: Observed, report: StatusBuilder) -> Plan:
    """The reconcile that finds the job ended only says so.

    What is left is deleted by the next one, which reads the outcome from the status: were the pods deleted first, a
    status write that fails would lose it, and the job would train anew. Pods that were never adopted decide no outcome,
    and go first: with the status nothing would search for them again.
    """
    objects = _objects_at_rest(job, framework)
    ended = dataclasses.replace(job, status=report.status() or job.status)
    if foreign := clean_pod_policy.foreign_targets(ended, observed):
        return Plan(deletions=foreign, requeue_after=IMMEDIATE, presumes_current_spec=True)
    clean = clean_pod_policy.is_clean(ended, observed, owned_objects.keys_of_job(objects))
    report.phase(_last_phase(report.state) if clean else c.PHASE_CLEANUP)
    ttl = job.run_policy.ttl_seconds_after_finished
    # cleanPodPolicy None keeps an autoscaler no longer either, and a TensorBoard lives on
    is_settled = not owned_objects.surplus(objects, observed) and not _lacking(_living_on(objects), observed)
    rests = clean and is_settled and not _hosts_in_reach(objects, observed)
    return Plan(
        status=report.status(),
        events=report.events,
        requeue_after=ttl if rests else IMMEDIATE,
        presumes_known_pods=True,
    )


def _soonest(wait: float | None, deletions: Sequence[Deletion]) -> float | None:
    """What was deleted may be gone before anybody watches for it, so the next look cannot wait for an event."""
    return IMMEDIATE if deletions else wait


def _last_phase(state: object) -> str:
    return c.PHASE_DONE if state == c.STATE_SUCCEEDED else c.PHASE_FAILED


def _completed_of(job: DLJob) -> dict[str, set[int]]:
    """The completed replicas, without those that an elastic job no longer has: they run again when it grows."""
    sizes = {group.type.lower(): group.replicas for group in job.groups}
    stored = completed_.read(job.status.get("completed"))
    return {type_: {i for i in indexes if i < sizes.get(type_, 0)} for type_, indexes in stored.items()}


def _of_this_spec(job: DLJob, observed: Observed, hashes: SpecHashes) -> Observed:
    sizes = {group.type.lower(): group.replicas for group in job.groups}
    pods = tuple(p for p in observed.pods if p.spec_hash == hashes.of(p.type, p.index) and p.index < sizes[p.type])
    return dataclasses.replace(observed, pods=pods)


def _lost_launchers(job: DLJob, observed: Observed) -> tuple[str, ...]:
    """The types that batch Jobs run and that have none, unless the job is new."""
    if not (job.status or observed.pods or observed.services or observed.owned_objects):
        return ()
    return tuple(group.type for group in job.groups if group.batch_job and not observed.pods_of(group.type))


def _undecided(observed: Observed, current: Observed, going_on: Observed) -> Observed:
    """``observed`` without those of the ``current`` pods whose replicas have succeeded."""
    if going_on is current:
        return observed
    finished = {pod.uid for pod in current.pods}.difference(pod.uid for pod in going_on.pods)
    return dataclasses.replace(observed, pods=tuple(pod for pod in observed.pods if pod.uid not in finished))


def _has_other_pods(job: DLJob, observed: Observed, hashes: SpecHashes) -> bool:
    """Whether a pod that is not being deleted is of another spec than this one."""
    sizes = {group.type.lower(): group.replicas for group in job.groups}
    return any(
        not pod.deleting and (pod.index >= sizes.get(pod.type, 0) or restart_job.attempt_of(pod, hashes) is None)
        for pod in observed.pods
    )


def _report_phase(job: DLJob, report: StatusBuilder, up: bool, anew: bool) -> None:
    """Running once every replica is ``up``, and from then on: only a job begun ``anew`` goes back to Creating."""
    if up:
        report.running()
    on = job.status.get("phase") == c.PHASE_RUNNING and not anew
    report.phase(c.PHASE_RUNNING if up or on else c.PHASE_CREATING)


def _report_wait(job: DLJob, going_on: Observed, found: Losses, report: StatusBuilder) -> None:
    """What the job waits for, or which of its replicas fail again and again."""
    held = (pod for pod in going_on.pods if pod.waiting and not pod.deleting)
    waiting = min(held, key=lambda pod: gang_standing.is_echo(pod.waiting), default=None)
    held_up = f"{pod_creation.subject(waiting)}: {waiting.waiting}" if waiting else ""
    if waiting and pod_creation.is_denied(waiting) and clip(held_up) != job.status.get("reason"):
        report.event("Warning", c.EVENT_NOT_CREATED, held_up)
    deciding = losses.without(going_on, found.uids | found.undecided)
    lost = "; ".join(failure.describe(p).message for p in failure.lost_pods(job, deciding))
    crash = crash_loops.first(going_on, job.status, found.uids)
    report.waiting(held_up or crash or (lost and f"the others go on: {lost}"))


def _causes(job: DLJob, pods: Sequence[PodState]) -> list[PodState]:
    """Those of the pods for which all replicas restart that have failed or that a rule is about."""
    return [pod for pod in pods if pod_ends.has_failed(pod) or failure.action_for(job, pod)]


def _report_terminating(
    job: DLJob, pods: Sequence[PodState], awaited: Sequence[PodState], report: StatusBuilder, now: datetime
) -> None:
    """Report pods of a dead node: Kubernetes keeps them as terminating, and the job would wait without a reason. Where
    there is no other reason, report also the ``awaited`` pods that take longer than usual."""
    before = str(job.status.get("reason") or "")
    text = termination.on_lost_node(job, pods) or termination.stuck(pods, now)
    if text:
        if text != before:
            report.event("Warning", c.EVENT_NOT_TERMINATED, text)
        report.waiting(text)
    elif not report.reason:
        report.waiting(termination.noticed(awaited, now, before))


def _report_created_pods(job: DLJob, observed: Observed, report: StatusBuilder) -> None:
    """Report the pods of a reconcile that deferred the creation Event to this one, or failed to write the status."""
    if observed.pods and not conditions.is_condition_true(conditions.read_conditions(job.status), c.CONDITION_CREATED):
        names = [pod.name for pod in observed.pods if pod.has_pod]
        launchers = [pod.name for pod in observed.pods if not pod.has_pod]
        report.event("Normal", c.EVENT_CREATED, creation_event.text(job, names, launchers))


def _created_so_far(
    job: DLJob, current: Observed, starts: Sequence[PodToCreate], pods: Sequence[Mapping[str, Any]]
) -> list[str]:
    """The names for the Event on the creation. That of a job which several reconciles create names the pods of all."""
    is_first = job.status.get("phase") != c.PHASE_RUNNING and not any(start.attempt for start in starts)
    earlier = [pod.name for pod in current.pods if pod.has_pod and not pod.deleting] if is_first else []
    return earlier + [pod["metadata"]["name"] for pod in pods if pod["kind"] != batch_job.KIND]
