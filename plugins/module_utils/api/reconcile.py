"""One pass over one job: read, parse, plan, write. The only place where the pure logic meets the API."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import cache_snapshot, cluster_info, reader, routes
from ansible_collections.dljob.operator.plugins.module_utils.api.cluster_info import OperatorSettings
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import ApiError, RestClient
from ansible_collections.dljob.operator.plugins.module_utils.api.writer import (
    ApplyResult,
    ObservedVersion,
    Writer,
    observed_version,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic import rbac
from ansible_collections.dljob.operator.plugins.module_utils.logic.accelerators.resolve import (
    required_info,
    resolve_accelerators,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.environment import shared_env_configmap
from ansible_collections.dljob.operator.plugins.module_utils.logic.invalid import plan_invalid
from ansible_collections.dljob.operator.plugins.module_utils.logic.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import (
    mark_degraded,
    mark_failed,
    mark_retry,
    plan,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies import initial_status
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan

Resource = Mapping[str, Any]

CONFLICT_REQUEUE = 0.5
"""Seconds until a look at a job that changed under our hands."""
RETRY_REQUEUE = 5.0
"""Seconds until another try of a write that Kubernetes would not do now (quota, a name still being deleted)."""
PREDECESSOR_REQUEUE = 1.0
"""Seconds until another try where the garbage collector has yet to remove what a deleted job of this name owned."""


@dataclass(frozen=True)
class Outcome:
    """What one pass did. ``ok`` is false where it must be done again; ``requeue_after`` are seconds, if any."""

    resource: Resource
    plan: Plan
    ok: bool
    changed: bool
    message: str
    requeue_after: float | None
    wrote: tuple[ObservedVersion, ...] = ()
    warnings: tuple[str, ...] = ()
    """What the operator may not do or see, for its own log: no job's fault."""

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
            "wrote": [list(version) for version in self.wrote],
            "warnings": list(self.warnings),
        }


def reconcile(
    api: RestClient,
    resource: Resource,
    framework: Framework,
    dry_run: bool = False,
    cluster_domain: str = "cluster.local",
    now: datetime | None = None,
    operator_settings: OperatorSettings | None = None,
) -> Outcome:
    """Bring the cluster one step closer to what ``resource`` asks for.

    Raises :class:`ApiError` where the API server could not be asked at all.
    """
    moment = now or datetime.now(UTC)
    if resource["metadata"].get("deletionTimestamp"):
        return Outcome(resource, Plan(), True, False, "being deleted", None)  # the garbage collector does the rest
    writer = Writer(api, resource, dry_run)
    try:
        job = parse_job(resource, framework)
    except InvalidJob as e:
        began = "" if resource.get("status") else _first_pod(api, resource)
        planned = plan_invalid(resource, e.problems, moment, began)
        return _report(writer, resource, planned, ApplyResult(), moment, str(e), dry_run)
    owned = dict(reader.owned_objects(api, job.namespace, job.uid, _kinds(job, framework)))
    observed = build_observed_state(job.uid, framework.container, owned.pop("Pod"), owned.pop("Service"), owned)
    planned = plan(job, framework, observed, moment, cluster_domain)
    warnings: tuple[str, ...] = ()
    problems: list[str] = []
    needs = required_info(planned, job)
    if needs:
        here, warnings = cluster_info.read(api, needs, operator_settings or OperatorSettings())
        planned = resolve_accelerators(planned, job, here)
    written = writer.objects(planned)
    if written.refused:
        planned = mark_failed(planned, job, written.refused, moment)
    elif written.postponed or written.predecessors:
        planned = mark_retry(planned, job, [*written.postponed, *_still_there(written.predecessors)])
    else:
        problems = [*written.optional_failures, *routes.ensure(api, planned, job.namespace, job.uid, dry_run)]
        if problems:
            planned = mark_degraded(planned, job, problems)
    if planned.delete_job:
        writer.delete_job()
        return Outcome(resource, planned, True, True, "its time to live is over", None)
    has_next_look = cache_snapshot.current() is not None and not dry_run
    made = bool(written.created) and not written.incomplete
    later = has_next_look and made and initial_status.can_defer(job, observed, planned)
    done = _report(writer, resource, planned, written, moment, "; ".join(written.refused), dry_run, later)
    lacking = rbac.missing_permissions([*written.refused, *written.postponed, *problems])
    return dataclasses.replace(done, warnings=(*map(rbac.explain_denial, warnings), *lacking, *done.warnings))


def _kinds(job: DLJob, framework: Framework) -> list[str]:
    """What a job like this may own: of the rarer kinds only those that its framework ever makes."""
    config_maps = any(group.default_program for group in job.groups) or shared_env_configmap.may_share(job)
    return ["Pod", "Service", *["ConfigMap"] * config_maps, *["Deployment"] * (framework.tensorboard is not None)]


def _still_there(names: list[str]) -> list[str]:
    """One sentence about what a deleted job of the same name still owns; the same one however many objects it is."""
    if not names:
        return []
    return ["objects of the deleted job of this name are still there; new ones follow once Kubernetes has removed them"]


def _first_pod(api: RestClient, resource: Resource) -> str:
    """When the first of the pods was made that the job has, "" where it has none."""
    metadata = resource["metadata"]
    pods = reader.owned_objects(api, metadata["namespace"], metadata.get("uid") or "", ["Pod"])["Pod"]
    return min((str(pod["metadata"]["creationTimestamp"]) for pod in pods), default="")


def _report(
    writer: Writer,
    resource: Resource,
    planned: Plan,
    written: ApplyResult,
    now: datetime,
    message: str,
    dry_run: bool,
    later: bool = False,
) -> Outcome:
    requeue = planned.requeue_after
    unheard: tuple[str, ...] = ()
    wrote = list(written.versions)
    if later:
        requeue = initial_status.LATEST if requeue is None else min(requeue, initial_status.LATEST)
    elif planned.status is not None and not dry_run:
        try:
            wrote.append(observed_version(writer.status(planned.status)))
        except ApiError as e:
            if e.status == 404:  # deleted meanwhile
                return Outcome(resource, planned, True, written.changed, "", None, tuple(wrote))
            if e.status != 409:
                raise
            return Outcome(
                resource, planned, True, written.changed, "changed meanwhile", CONFLICT_REQUEUE, tuple(wrote)
            )
        unheard = rbac.missing_permissions(writer.events(planned.events, now))
    if written.predecessors:
        requeue = min(PREDECESSOR_REQUEUE, requeue or PREDECESSOR_REQUEUE)
    elif written.postponed or written.waiting:
        message = "; ".join(written.postponed[:3])
        requeue = min(
            RETRY_REQUEUE, requeue or RETRY_REQUEUE
        )  # not at once: what was refused for now would be refused again
    changed = written.changed or planned.status is not None
    return Outcome(resource, planned, True, changed, message, requeue, tuple(wrote), unheard)
