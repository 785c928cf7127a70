"""One reconcile of one job: parse -> read -> plan -> resolve -> apply -> conclude -> commit.

Here the pure logic meets the API. :mod:`.cache_checks` asks it what a plan presumes; :mod:`.queueing` holds a job back
after ``parse``, and writes its Workload after ``commit``. Each step is a function of the results before it. ``parse``
comes before ``read`` because the job and its framework decide which kinds of owned objects are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import budget as budgets
from ansible_collections.dljob.operator.plugins.module_utils.api import (
    cache_checks,
    nodes,
    pod_events,
    queueing,
    routes,
)
from ansible_collections.dljob.operator.plugins.module_utils.api.budget import Budget, Users
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.writer import Writer, observed_version
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import batch_job, shared_env_configmap
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.accelerators.resolve import (
    required_info,
    resolve_accelerators,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import adoption, pod_uses, reports
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parsed import Frameworks, Parsed
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import conclude as conclude_
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import invalid
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import plan as plan_
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import CACHE_REQUEUE
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanSettings
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import (
    creation_event,
    force_delete_after,
    initial_status,
    slices,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.progress import with_progress
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.usage.report import (
    is_unsettled,
    still_holds,
    with_usage,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared import rbac
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import GangScheduler
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OF_EVERY_JOB, OWNED_KINDS
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import (
    ApplyResult,
    Conclusion,
    ObservedVersion,
    Resolution,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Fact, Plan

Resource = Mapping[str, Any]
CONFLICT_REQUEUE = 0.5
"""Seconds until the next reconcile of a job that changed between its read and its status write."""

ADOPTION_REQUEUE = 1.0
"""Seconds until the next reconcile of a job some of whose objects were adopted; their events trigger it too."""


@dataclass(frozen=True)
class Outcome:
    """What one reconcile did. ``ok`` is false where it must be repeated; ``requeue_after`` are seconds, if any."""

    resource: Resource
    plan: Plan
    ok: bool
    changed: bool
    message: str
    requeue_after: float | None
    wrote: tuple[ObservedVersion, ...] = ()
    continues: bool = False
    """Whether the next reconcile continues the writes of this one, because the job is larger than a slice."""
    warnings: tuple[str, ...] = ()
    """What the operator may not do or read, for its own log: not an error of the job."""
    status: Mapping[str, Any] | None = None
    """The status that was written, or that a dry run would write."""
    is_postponed: bool = False
    """Whether the job was not reconciled at all, because the others of its batch took too long."""
    seconds: float = 0.0
    """How long the reconcile took; :mod:`.batch` measures it."""

    def as_result(self) -> dict[str, Any]:
        """For the engine: see the RETURN documentation of ``dljob.operator.reconcile``."""
        metadata = self.resource["metadata"]
        return {
            "namespace": metadata.get("namespace", ""),
            "name": metadata.get("name", ""),
            "uid": metadata.get("uid", ""),
            "ok": self.ok,
            "changed": self.changed,
            "message": self.message,
            "requeue_after": self.requeue_after,
            "continues": self.continues,
            "postponed": self.is_postponed,
            "seconds": self.seconds,
            "wrote": [list(version) for version in self.wrote],
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class Committed:
    """The status write: the version that it made, what it lacked permission for, and whether the job had changed."""

    wrote: tuple[ObservedVersion, ...] = ()
    warnings: tuple[str, ...] = ()
    conflict: bool = False
    gone: bool = False


def reconcile(context: Context, resource: Resource, frameworks: Frameworks) -> Outcome:
    """Bring the cluster one step closer to the spec of ``resource``.

    Raises :class:`ApiError` where the API server does not answer the reads.
    """
    if resource["metadata"].get("deletionTimestamp"):
        return Outcome(resource, Plan(), True, False, "being deleted", None)  # the garbage collector does the rest
    now = context.clock()
    writer = Writer(context.client, resource, context.dry_run, context.event_sender)

    parsed = Parsed.of(resource, frameworks)
    queued = queueing.look(context, parsed)
    parsed = queueing.take(parsed, queued)
    observed, unread = pod_events.explain(context, parsed, read(context, parsed), now)
    planned = plan(context, parsed, observed, now)
    if planned.presumed(Fact.PODS_ARE_KNOWN) and (foreign := foreign_pods(context, parsed, observed)):
        observed = replace(observed, foreign=foreign)
        planned = plan(context, parsed, observed, now)
    if reason := cache_checks.reason_to_wait(context, parsed, observed, planned):
        return Outcome(resource, Plan(), True, False, reason, CACHE_REQUEUE)
    resolution = resolve(context, parsed, planned)
    if cache_checks.has_older_spec(context, parsed, planned):
        return Outcome(resource, Plan(), True, False, "the cache has an older spec of the job", CACHE_REQUEUE)
    result = apply(context, writer, parsed, resolution, budget_for(context, parsed, observed, resolution.plan))
    if planned.delete_job:
        if writer.delete_job():
            return Outcome(resource, planned, True, True, "its time to live is over", None)
        return Outcome(resource, planned, True, False, "changed meanwhile", CONFLICT_REQUEUE)
    if result.adopted:
        return _adopted(writer, parsed, resolution.plan, result, now)
    concluded = conclude(parsed, resolution, result, now)
    if may_defer(context, parsed, observed, result, concluded):
        concluded = conclude_.defer(concluded)
    concluded = account_for(parsed, observed, concluded, now)
    concluded = with_report(context, parsed, concluded, now)
    committed = commit(context, writer, resource, concluded, now)
    outcome = _outcome(parsed, resolution, result, concluded, committed)
    if queued is not None and not (committed.conflict or committed.gone):
        status = as_mapping(resource.get("status")) if concluded.status is None else concluded.status
        settled = queueing.settle(context, queued, queueing.Done(parsed, resolution.plan, status), now)
        outcome = _settled(outcome, settled)
        if concluded.status is None and settled.status is not None:  # else the next try writes it
            commit(context, writer, resource, replace(concluded, status=settled.status, events=()), now)
    return replace(outcome, warnings=(*outcome.warnings, *unread)) if unread else outcome


def read(context: Context, parsed: Parsed) -> Observed:
    """The objects that the job owns, of an invalid job only where it :func:`may_have_pods <.invalid.may_have_pods>`."""
    if parsed.job is None and not invalid.may_have_pods(parsed.resource):
        return Observed()
    gang = context.settings.gang
    kinds = _owned_kinds(parsed.job, parsed.framework, gang) if parsed.job else _active_kinds(parsed.framework, gang)
    owned = context.reader.owned_objects(parsed.owner.namespace, parsed.owner.uid, kinds)
    pods, services = owned.pop("Pod"), owned.pop("Service", ())
    observed = build_observed_state(parsed.owner, parsed.framework.container, pods, services, owned)
    if parsed.job and parsed.job.run_policy.stall_policy:
        observed = replace(observed, reports=reports.read(context.reader.reported_progress(parsed.owner.uid)))
    if not context.settings.usage:
        return observed
    batch_jobs = [one.uid for (kind, _), one in observed.owned_objects.items() if kind == batch_job.KIND]
    gone = context.reader.deleted_pods(parsed.owner.uid)
    uses = partial(pod_uses.read, parsed.owner, batch_jobs, parsed.framework.container, pods, gone)
    return replace(observed, uses=uses)


def foreign_pods(context: Context, parsed: Parsed, observed: Observed) -> tuple[PodState, ...]:
    """The pods of the job that another operator has created and that are not adopted, without those that terminate."""
    job = parsed.job
    if not (adoption.may_be_pending(job, observed) if job else adoption.may_be_pending_of(parsed.framework)):
        return ()
    found = context.reader.pods_of_training_operator(parsed.owner, parsed.resource["metadata"]["name"])
    foreign = (pod for pod in found if adoption.missing_labels(pod["metadata"], parsed.owner.uid))
    states = build_observed_state(parsed.owner, parsed.framework.container, foreign, []).pods
    return tuple(state for state in states if not state.deleting)


def _owned_kinds(job: DLJob, framework: Framework, gang: GangScheduler | None) -> list[str]:
    """What such a job may own; of the rarer kinds only those that its framework ever creates."""
    groups = [gang.owned_kind] if gang else []
    if framework.hooks.objects or any(flavor.batch_jobs for flavor in framework.flavors):
        return list(dict.fromkeys((*OF_EVERY_JOB, *_declared_kinds(framework), *groups)))
    return ["Pod", "Service", *["ConfigMap"] * shared_env_configmap.may_share(job), *groups]


def _declared_kinds(framework: Framework) -> Iterator[str]:
    """The kinds that the framework's hook may return and an engine watches."""
    return (kind for kind in framework.owns if OWNED_KINDS[kind].watched)


def _active_kinds(framework: Framework, gang: GangScheduler | None) -> list[str]:
    """The kinds of the objects that a suspended job has no more: what runs its replicas, and what a hook declares."""
    return list(dict.fromkeys(("Pod", *_declared_kinds(framework), *([gang.owned_kind] if gang else []))))


def plan(context: Context, parsed: Parsed, observed: Observed, now: datetime) -> Plan:
    """What to create, to delete and to report. Pure but for its arguments."""
    window = context.client.executor.window.width if context.is_contended else None
    largest = slices.largest_slice(window) if context.reader.has_watch else None
    if parsed.job is None:
        whole = invalid.plan_invalid(parsed.resource, parsed.framework, parsed.problems, now, observed)
        return slices.cut_deletions(whole, largest)
    given = context.settings
    settings = PlanSettings(given.cluster_domain, largest, given.gang, given.progress)
    return plan_.plan(parsed.job, parsed.framework, observed, now, settings)


def budget_for(context: Context, parsed: Parsed, observed: Observed, planned: Plan) -> Budget | None:
    """The time of the writes. Without an engine that watches, one reconcile writes everything."""
    if not context.reader.has_watch:
        return None
    times = budgets.OF_JOB_WITH_PODS if observed.pods else budgets.OF_NEW_JOB
    writes = len(planned.services[slices.FREE_SERVICES :]) + len(planned.pods) + len(planned.deletions)
    if context.changes is None:
        users = Users(parsed.owner.uid, context.is_contended or not observed.pods)
        return Budget(times.always_short(), writes, users)
    return Budget(times, writes, Users(parsed.owner.uid, context.is_contended, context.changes))


def resolve(context: Context, parsed: Parsed, planned: Plan) -> Resolution:
    """The plan with what its pods need on nodes with accelerators, and without the deletions by force that the nodes
    forbid; most plans need nothing and read nothing."""
    notes: tuple[EventNote, ...] = ()
    if names := force_delete_after.nodes_of(planned):
        planned, notes = force_delete_after.confirm(planned, nodes.read_states(context.client, names))
    required = required_info(planned, parsed.framework) if parsed.job else None
    if parsed.job is None or not required:
        return Resolution(planned, notes=notes)
    info, warnings = context.reader.cluster_info(required, context.settings)
    return replace(resolve_accelerators(planned, parsed.framework, info, warnings), notes=notes)


def apply(
    context: Context, writer: Writer, parsed: Parsed, resolution: Resolution, budget: Budget | None
) -> ApplyResult:
    """Write the difference between the plan and the cluster, as much of it as ``budget`` permits."""
    result = writer.objects(resolution.plan, budget)
    is_held_up = result.refused or result.postponed or result.taken or result.predecessors
    if parsed.job is not None and not is_held_up:
        job = parsed.job
        result.optional_failures += routes.ensure(
            context.client, resolution.plan, job.namespace, job.uid, context.dry_run
        )
    return result


def conclude(parsed: Parsed, resolution: Resolution, result: ApplyResult, now: datetime) -> Conclusion:
    """What to report of it."""
    if parsed.job is None:
        status = as_mapping(parsed.resource.get("status"))
        return conclude_.conclude_invalid(status, parsed.problems, resolution.plan, result)
    return conclude_.conclude(parsed.job, resolution, result, now)


def may_defer(context: Context, parsed: Parsed, observed: Observed, result: ApplyResult, concluded: Conclusion) -> bool:
    """Whether the next reconcile may write the first status: one follows where an engine watches the new pods."""
    if parsed.job is None or context.dry_run or not context.reader.has_watch:
        return False
    if not any(result.created_of("Pod")) or result.incomplete or concluded.continues:
        return False
    return initial_status.can_defer(parsed.job, observed, concluded.status)


def account_for(parsed: Parsed, observed: Observed, concluded: Conclusion, now: datetime) -> Conclusion:
    """The conclusion with what the job has used, where a status is written and the operator keeps accounts.

    Of a job at rest one is written for the account too, since its last pods may end after its last status.
    """
    job = parsed.job
    if job is None or observed.uses is None or (concluded.status is None and not is_unsettled(job)):
        return concluded
    created = str(parsed.resource["metadata"].get("creationTimestamp") or "")
    status = with_usage(job, created, concluded.status or job.status, observed.uses, now)
    if concluded.status is None and still_holds(status):
        return concluded
    return replace(concluded, status=status)


def with_report(context: Context, parsed: Parsed, concluded: Conclusion, now: datetime) -> Conclusion:
    """The conclusion with the progress that the job's program has reported."""
    if parsed.job is None or not (reported := context.reader.reported_progress(parsed.owner.uid)):
        return concluded
    return replace(concluded, status=with_progress(parsed.job.status, concluded.status, reported, now))


def _adopted(writer: Writer, parsed: Parsed, planned: Plan, result: ApplyResult, now: datetime) -> Outcome:
    """The plan took the adopted pods for missing ones, so its status is wrong: the next reconcile writes it."""
    note = adoption.event(result.adopted)
    return Outcome(
        resource=parsed.resource,
        plan=planned,
        ok=True,
        changed=True,
        message=note.message,
        requeue_after=ADOPTION_REQUEUE,
        wrote=tuple(result.versions),
        warnings=rbac.missing_permissions(writer.events([note], now)),
    )


def commit(context: Context, writer: Writer, resource: Resource, concluded: Conclusion, now: datetime) -> Committed:
    """The one status write of a reconcile, then its Events. Without the write, only those on created pods."""
    if context.dry_run:
        return Committed()
    created = creation_event.only(concluded.events)
    if concluded.status is None:
        return Committed(warnings=rbac.missing_permissions(writer.events(created, now)))
    try:
        version = observed_version(writer.status(concluded.status))
    except ApiError as e:
        if e.status not in (404, 409):
            raise
        if e.status == 409 and creation_event.is_recorded(resource):  # no later reconcile reports these pods
            writer.events(created, now)
        return Committed(conflict=e.status == 409, gone=e.status == 404)
    return Committed((version,), rbac.missing_permissions(writer.events(concluded.events, now)))


def _settled(outcome: Outcome, settled: queueing.Settled) -> Outcome:
    """The outcome with the result of the step of the job's Workload."""
    waits = [wait for wait in (outcome.requeue_after, settled.requeue_after) if wait is not None]
    return replace(
        outcome,
        ok=outcome.ok and not settled.problem,
        changed=outcome.changed or settled.changed,
        message=settled.problem or outcome.message,
        requeue_after=min(waits, default=None),
    )


def _outcome(
    parsed: Parsed, resolution: Resolution, result: ApplyResult, concluded: Conclusion, committed: Committed
) -> Outcome:
    wrote = (*result.versions, *committed.wrote)
    plan = Plan() if result.refused else resolution.plan
    if committed.gone:
        return Outcome(parsed.resource, plan, True, result.changed, "", None, wrote)
    if committed.conflict:
        message = "changed meanwhile"
        return Outcome(parsed.resource, plan, True, result.changed, message, CONFLICT_REQUEUE, wrote)
    notes = (note.message for note in resolution.notes)
    refusals = [*result.refused, *result.postponed, *result.optional_failures, *notes]
    return Outcome(
        resource=parsed.resource,
        plan=plan,
        ok=True,
        changed=result.changed or concluded.status is not None,
        message=concluded.message,
        requeue_after=concluded.requeue_after,
        wrote=wrote,
        continues=concluded.continues,
        warnings=(
            *map(rbac.explain_denial, resolution.warnings),
            *rbac.missing_permissions(refusals),
            *committed.warnings,
        ),
        status=concluded.status,
    )
