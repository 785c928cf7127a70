"""The plan of a job at rest: one that has ended or is suspended, and the reconcile that finds it ended."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects, services
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import adoption
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    clean_pod_policy,
    suspension,
    ttl_after_finished,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import replica_statuses
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    StatusBuilder,
    outcome,
    starts_after_edit,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import (
    IMMEDIATE,
    Deletion,
    Fact,
    Plan,
    Presumption,
    presume,
)


def finished(job: DLJob, framework: Framework, observed: Observed, report: StatusBuilder, now: datetime) -> Plan:
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
    ensured = (
        # a request may fail, so each plan revokes the launcher's rights while a pod terminates
        *(rights if cleanup_targets or hosts or _terminates(observed) else ()),
        *hosts,
        *_lacking(wanted, observed),
    )
    return Plan(
        deletions=deletions,
        ensured_objects=ensured,
        reads_first=bool(ensured),
        outdated=owned_objects.uids_of(ensured, observed),
        routes=owned_objects.unwatched(wanted),
        stale_routes=service_names(surplus),
        status=report.status(),
        requeue_after=soonest(min((w for w in (wait, left) if w is not None), default=None), deletions),
        presumes=_presumed(job, observed) if cleanup_targets else (),
    )


def suspended(job: DLJob, framework: Framework, observed: Observed, report: StatusBuilder) -> Plan:
    """No pods, no clock: the job waits for somebody to resume it."""
    if first := suspension.first_step(job.status):
        return first
    report.suspended()
    report.waiting(job.held)
    report.phase(c.PHASE_SUSPENDED)
    report.replicas(replica_statuses.count(job, Observed(), {}))
    gone = adoption.all_deletions(observed)
    objects = _objects_at_rest(job, framework)
    surplus = owned_objects.surplus(objects, observed)
    rights = owned_objects.revocable(objects)
    hosts = _hosts_in_reach(objects, observed)
    ensured = (*rights, *hosts) if gone or hosts or _terminates(observed) else ()
    others = Plan(
        # as in v1 not the names of single replicas; the others stay, and with them the job's scope
        deletions=(*surplus, *services.of_replicas(job, observed)),
        ensured_objects=ensured,
        reads_first=bool(ensured),
        outdated=owned_objects.uids_of(ensured, observed),
    )
    return suspension.later_steps(gone, others, report)


def end(job: DLJob, framework: Framework, observed: Observed, report: StatusBuilder) -> Plan:
    """The reconcile that finds the job ended only says so.

    What is left is deleted by the next one, which reads the outcome from the status: were the pods deleted first, a
    status write that fails would lose it, and the job would train anew. Pods that were never adopted decide no outcome,
    and go first: with the status nothing would search for them again.
    """
    objects = _objects_at_rest(job, framework)
    ended = dataclasses.replace(job, status=report.status() or job.status)
    if foreign := clean_pod_policy.foreign_targets(ended, observed):
        return Plan(deletions=foreign, requeue_after=IMMEDIATE, presumes=presume({Fact.SPEC_IS_CURRENT: True}))
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
        presumes=presume({Fact.PODS_ARE_KNOWN: True}),
    )


def _objects_at_rest(job: DLJob, framework: Framework) -> tuple[Mapping[str, Any], ...]:
    """The objects that the framework's hook wants for ``job`` while it is suspended, or once it is finished."""
    if framework.hooks.objects is None:
        return ()
    return owned_objects.at_rest(owned_objects.build(job, framework, build_cluster_spec(job, framework)))


def _presumed(job: DLJob, observed: Observed) -> tuple[Presumption, ...]:
    """What the cleanup of a job that has ended presumes."""
    return presume(
        {
            Fact.STILL_RUNS: clean_pod_policy.running_again(job, observed),
            Fact.IS_UNSTARTED: clean_pod_policy.presumed_unstarted(job, observed),
            Fact.SPEC_IS_CURRENT: starts_after_edit(job.status),
        }
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


def _last_phase(state: object) -> str:
    return c.PHASE_DONE if state == c.STATE_SUCCEEDED else c.PHASE_FAILED


def service_names(deletions: Sequence[Deletion]) -> tuple[str, ...]:
    """The names of the Services among the ``deletions``."""
    return tuple(deletion.name for deletion in deletions if deletion.kind == "Service")


def soonest(wait: float | None, deletions: Sequence[Deletion]) -> float | None:
    """What was deleted may be gone before anybody watches for it, so the next look cannot wait for an event."""
    return IMMEDIATE if deletions else wait
