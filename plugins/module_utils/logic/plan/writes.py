"""The writes of a job that goes on: its pods, its other objects, what is deleted, and when to look again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import (
    batch_job,
    owned_objects,
    pod_group,
    services,
    shared_env_configmap,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.owned_objects import Manifest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import PodContext, build_pod
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import SpecHashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import at_rest, gang_standing, reporting
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    creation_event,
    force_delete_after,
    pending_timeout,
    pod_creation,
    restart_job,
    slices,
    startup_events,
    startup_policy,
    termination,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.situation import Decision, Situation
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import replica_statuses
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import StatusBuilder
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import (
    IMMEDIATE,
    Fact,
    Plan,
    PodToCreate,
    Presumption,
    presume,
)


def writes(found: Situation, decided: Decision, context: PodContext, report: StatusBuilder) -> Plan:
    """The plan of a job that goes on. What its pods wait for now goes into ``report``."""
    job, observed, actions, now = found.job, found.observed, decided.actions, found.now
    terminating = (*observed.pods, *(pod for pod in observed.remaining if pod.deleting))
    forced = force_delete_after.due(job, terminating, now)
    if not forced:  # else the state of their nodes decides what to report
        reporting.terminating(job, terminating, actions.awaited, report, now)
    largest = found.inputs.settings.largest_slice
    starts = slices.first_starts(actions.starts, largest)
    cluster = {**context.cluster, "attempt": found.attempt}
    pods, config_maps = _pods(found, decided, starts, dataclasses.replace(context, cluster=cluster), report)
    missing_services = services.missing(job, observed)
    made_services = slices.first_services(missing_services, largest)
    is_partial = len(starts) < len(actions.starts) or len(made_services) < len(missing_services)
    objects = _objects(found, decided, cluster, bool(pods), report)
    surplus = owned_objects.surplus(objects.all, observed)
    if pods and not is_partial:
        _report_creation(found, starts, pods, report)
    first, later = _in_order(objects, config_maps, observed, bool(pods))
    return Plan(
        auxiliary_objects=first,
        services=tuple(services.build(job, found.framework, cluster, one) for one in made_services),
        pods=pods,
        deletions=(
            *actions.deletions,
            *forced,
            *surplus,
            *services.surplus(job, observed),
            *(() if pods else shared_env_configmap.surplus(job, observed)),
        ),
        ensured_objects=later,
        reads_first=bool(observed.pods and (first or later)),
        outdated=owned_objects.uids_of(later, observed),
        routes=owned_objects.unwatched(objects.all),
        stale_routes=at_rest.service_names(surplus),
        status=report.status(),
        events=report.events,
        requeue_after=IMMEDIATE if is_partial else _next_look(found, decided, terminating),
        missing_pods=len(actions.starts),
        is_partial=is_partial,
        presumes=_presumed(found, decided, bool(starts)),
        still_used=decided.standing.still_used,
    )


def _pods(
    found: Situation, decided: Decision, starts: Sequence[PodToCreate], context: PodContext, report: StatusBuilder
) -> tuple[tuple[Manifest, ...], tuple[Manifest, ...]]:
    """The pods of the replicas that start, and the ConfigMaps that they share."""
    hook = found.framework.hooks.environment
    shared, config_maps = shared_env_configmap.due(found.job, hook, context.cluster, found.observed, bool(starts))
    of_pods = dataclasses.replace(context, shared=shared, gang=decided.gang, traits=decided.standing.traits)
    pods = tuple(_build_replica(found.job, start, of_pods) for start in starts)
    if found.was_running and starts:
        reporting.ignored(found.job, context, report)
    return pods, config_maps


def _presumed(found: Situation, decided: Decision, starts_any: bool) -> tuple[Presumption, ...]:
    """What the writes presume."""
    job, observed, actions = found.job, found.observed, decided.actions
    is_of_pods = bool(actions.begins) and not decided.stalls.restarting
    return presume(
        {
            Fact.PODS_ARE_DELETED: is_of_pods and not actions.restarted,
            Fact.LAUNCHERS_HAVE_ENDED: _lost_launchers(job, observed) if starts_any else (),
            Fact.SPEC_IS_CURRENT: bool(actions.deletions) and _has_other_pods(job, observed, found.spec_hashes),
        }
    )


def _build_replica(job: DLJob, start: PodToCreate, context: PodContext) -> Mapping[str, Any]:
    """The pod of a replica, or the Job that runs it."""
    pod = build_pod(job, start, context)
    return batch_job.wrap(job, pod) if start.group.batch_job else pod


@dataclass(frozen=True, slots=True)
class _Objects:
    """The objects that the job owns besides pods and Services."""

    all: tuple[Manifest, ...]
    group: Manifest | None
    """The PodGroup among them."""


def _objects(
    found: Situation, decided: Decision, cluster: Mapping[str, Any], makes_pods: bool, report: StatusBuilder
) -> _Objects:
    """What the framework's hook wants, and the group of a gang."""
    job, hooks = found.job, found.framework.hooks
    objects: tuple[Manifest, ...] = ()
    if hooks.objects:
        present = replica_statuses.present(job, found.current)
        objects = owned_objects.build(job, found.framework, {**cluster, **present})
    group = _group(found, decided)
    if group and decided.gang and decided.gang.is_native and not makes_pods and not report.reason:
        report.waiting(gang_standing.silence(decided.gang, job, found.observed, group, found.now))
    return _Objects((*objects, group) if group else objects, group)


def _group(found: Situation, decided: Decision) -> Manifest | None:
    """The PodGroup by which the pods start together, ``None`` where there is to be none."""
    job, observed, gang = found.job, found.observed, decided.gang
    after = startup_policy.types_after_gang(decided.waits)
    if gang is None:
        return None
    if not gang.is_native:
        return pod_group.build(job, gang, observed, after, found.completed)
    standing = decided.standing
    if not (standing.is_wanted and standing.traits):
        return None
    return pod_group.build_native(job, observed, after, found.completed, standing.traits)


def _in_order(
    objects: _Objects, config_maps: Sequence[Manifest], observed: Observed, makes_pods: bool
) -> tuple[tuple[Manifest, ...], tuple[Manifest, ...]]:
    """The objects to write before the pods, and those to write after them."""
    missing, changed = owned_objects.missing(objects.all, observed), owned_objects.changed(objects.all, observed)
    # an object that the training does not need must exist at its start too, so that its errors are seen then
    needed = missing if not observed.pods else tuple(x for x in missing if not owned_objects.lives_with_job(x))
    # a group that grows: before that its scheduler would start the new pods one by one
    grown = tuple(x for x in changed if x is objects.group)
    first = (*owned_objects.made_with_pods(objects.all), *needed, *config_maps, *grown) if makes_pods else ()
    unsettled = (*missing, *config_maps, *changed)
    later = owned_objects.with_rights(objects.all, unsettled)
    return first, tuple(x for x in later if not any(x is y for y in first))


def _report_creation(
    found: Situation, starts: Sequence[PodToCreate], pods: Sequence[Manifest], report: StatusBuilder
) -> None:
    launchers = [pod["metadata"]["name"] for pod in pods if pod["kind"] == batch_job.KIND]
    names = reporting.created_so_far(found.job, found.current, starts, pods)
    report.event("Normal", c.EVENT_CREATED, creation_event.text(found.job, names, launchers))


def _next_look(found: Situation, decided: Decision, terminating: Sequence[PodState]) -> float | None:
    """Seconds until the next reconcile if no watch event triggers one earlier, ``None`` where time changes nothing."""
    job, current, actions, now = found.job, found.current, decided.actions, found.now
    waits = (
        at_rest.soonest(actions.wait, actions.deletions),
        decided.time_left,
        found.lost.wait,
        termination.next_check(terminating, actions.awaited, now),
        force_delete_after.next_check(job, terminating, now),
        pending_timeout.next_check(job, current, now),
        startup_events.next_check(job, current, now),
        pod_creation.next_check(current, now),
        gang_standing.next_check(decided.gang, job, found.observed, now),
        decided.standing.wait,
        decided.stalls.wait,
    )
    return min((wait for wait in waits if wait is not None), default=None)


def _lost_launchers(job: DLJob, observed: Observed) -> tuple[str, ...]:
    """The types that batch Jobs run and that have none, unless the job is new."""
    if not (job.status or observed.pods or observed.services or observed.owned_objects):
        return ()
    return tuple(group.type for group in job.groups if group.batch_job and not observed.pods_of(group.type))


def _has_other_pods(job: DLJob, observed: Observed, hashes: SpecHashes) -> bool:
    """Whether a pod that is not being deleted is of another spec than this one."""
    sizes = {group.type.lower(): group.replicas for group in job.groups}
    return any(
        not pod.deleting and (pod.index >= sizes.get(pod.type, 0) or restart_job.attempt_of(pod, hashes) is None)
        for pod in observed.pods
    )
