"""Reads and writes the Workload by which Kueue queues a job: the requests of :mod:`..logic.queueing`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import is_owned_by
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parsed import Parsed
from ansible_collections.dljob.operator.plugins.module_utils.logic.queueing import placement, steps, turn, workload
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import MERGE_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.delete_options import delete_options
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MANAGER
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import WORKLOAD
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import LABEL_JOB_UID, LABEL_KUEUE_JOB_UID
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan

POLL = 10.0
"""Seconds after which a reconcile without an engine that watches Workloads looks again."""
AGAIN = 0.5
"""Seconds until the next reconcile where the Workload has changed since it was read."""

_KIND = workload.KIND
_QUERY = {"fieldManager": MANAGER, "fieldValidation": "Strict"}


@dataclass(frozen=True)
class Queued:
    """A job that names a queue, as it was found."""

    asked: workload.QuotaRequest | None
    """``None`` for an invalid job."""
    found: workload.Workload | None
    suspend: bool
    """Whether its user suspends it."""


@dataclass(frozen=True)
class Done:
    """What a reconcile has done for the job."""

    parsed: Parsed
    plan: Plan
    status: Mapping[str, Any]
    """The newest."""


@dataclass(frozen=True)
class Settled:
    """What a step did."""

    changed: bool = False
    requeue_after: float | None = None
    """Seconds until the next reconcile, where the step or the queue needs one."""
    problem: str = ""
    status: Mapping[str, Any] | None = None
    """The status with the problem, where it does not have it yet."""


def look(context: Context, parsed: Parsed) -> Queued | None:
    """The Workload of a job; ``None`` where the operator has no part in its queueing.

    A job that loses the label keeps its Workload, and with it its place or its quota.
    """
    if not context.settings.kueue or not turn.may_concern(parsed.resource, cached=context.reader.has_watch):
        return None
    owned = context.reader.owned_objects(parsed.owner.namespace, parsed.owner.uid, [WORKLOAD])[WORKLOAD]
    found = next((workload.read(one) for one in owned if is_owned_by(one, parsed.owner)), None)
    if found is None and not turn.begins(parsed.resource):
        return None
    if parsed.job is None:
        return Queued(None, found, suspend=False)
    labels = as_mapping(parsed.resource["metadata"].get("labels"))
    asked = workload.request(parsed.job, labels, found.queue if found else "")
    return Queued(asked, found, parsed.job.run_policy.suspend)


def take(parsed: Parsed, queued: Queued | None) -> Parsed:
    """The job as it is reconciled: held, or with what its admission adds."""
    if queued is None or queued.asked is None or parsed.job is None:
        return parsed
    return replace(parsed, job=turn.take(parsed.job, queued.asked, queued.found))


def settle(context: Context, queued: Queued, done: Done, now: datetime) -> Settled:
    """Take the next step for a job whose plan is carried out."""
    if context.dry_run:
        return Settled()
    seen = steps.Seen(queued.asked, done.status, queued.suspend, bool(done.plan.deletions))
    step = steps.next_step(seen, queued.found, clock.stamp(now))
    watched = context.reader.has_watch
    if step is None:
        return Settled(requeue_after=None if watched or seen.ended else POLL)
    try:
        _carry_out(context, done.parsed, queued, step)
    except ApiError as e:
        # the cache is behind, or Kueue was faster; of a class or a flavor 404 says that there is none
        reads = isinstance(step, steps.Create | steps.Replace | steps.Place | steps.Prioritize)
        if e.status == 409 or (e.status == 404 and not reads):
            return Settled(requeue_after=AGAIN)
        problem = _explain(e, step)
        told = turn.with_problem(done.status, queued.asked, problem) if queued.asked and not seen.ended else None
        return Settled(problem=problem, status=told)
    return Settled(changed=True, requeue_after=None if watched else AGAIN)


def _carry_out(context: Context, parsed: Parsed, queued: Queued, step: steps.Step) -> None:
    match step:
        case steps.Create():
            _create(context, parsed, queued)
        case steps.Delete():
            context.client.request("DELETE", _path(parsed, queued), delete_options(_found(queued).uid))
        case steps.Replace():
            _patch(context, parsed, queued, _rewritten(context, parsed, queued))
        case steps.Prioritize():
            asked = _asked(queued)
            spec = workload.priority_of(asked, _priority(context, asked))
            _patch(context, parsed, queued, {"spec": spec or {"priorityClassRef": None, "priority": 0}})
        case steps.Place(flavors):
            specs = {name: _get(context, "resourceflavors", name).get("spec") or {} for name in flavors}
            text = placement.compute(_found(queued), specs)
            _patch(context, parsed, queued, {"metadata": {"annotations": {workload.ANNOTATION_PLACEMENT: text}}})
        case steps.Activate():
            _patch(context, parsed, queued, step.patch)
        case steps.WriteStatus(fields):
            _patch(context, parsed, queued, {"status": dict(fields)}, "status")


def _create(context: Context, parsed: Parsed, queued: Queued) -> None:
    if theirs := _listed(context, parsed, LABEL_KUEUE_JOB_UID):
        raise ApiError(
            0,
            "QueuedTwice",
            f"Kueue's own integration has the Workload {theirs[0]} for this job: take the kind out of "
            "integrations.frameworks in Kueue's configuration, or start the operator without --kueue",
        )
    manifest = _manifest(context, parsed, queued)
    try:
        context.client.request("POST", _collection(parsed), manifest, _QUERY)
    except ApiError as e:
        name = manifest["metadata"]["name"]
        if e.status != 409 or name in _listed(context, parsed, LABEL_JOB_UID):
            raise
        raise ApiError(0, "NameTaken", f"{name} exists and is not this job's: delete or rename it") from e


def _listed(context: Context, parsed: Parsed, label: str) -> list[str]:
    """The names of the job's Workloads that have its uid in this label, from the API server."""
    found = context.client.request("GET", _collection(parsed), query={"labelSelector": f"{label}={parsed.owner.uid}"})
    return [one["metadata"]["name"] for one in found.get("items", ()) if is_owned_by(one, parsed.owner)]


def _rewritten(context: Context, parsed: Parsed, queued: Queued) -> Mapping[str, Any]:
    new = _manifest(context, parsed, queued)
    spec = {"maximumExecutionTimeSeconds": None, **new["spec"]}
    return {"metadata": {"annotations": new["metadata"]["annotations"]}, "spec": spec}


def _priority(context: Context, asked: workload.QuotaRequest) -> int | None:
    if asked.priority_class:
        return int(_get(context, "workloadpriorityclasses", asked.priority_class).get("value") or 0)
    if asked.pod_priority_class:
        path = f"/apis/scheduling.k8s.io/v1/priorityclasses/{asked.pod_priority_class}"
        return int(context.client.request("GET", path).get("value") or 0)
    return None


def _get(context: Context, plural: str, name: str) -> Mapping[str, Any]:
    return context.client.request("GET", f"/apis/{_KIND.api_version}/{plural}/{name}")


def _manifest(context: Context, parsed: Parsed, queued: Queued) -> Mapping[str, Any]:
    if parsed.job is None:
        raise LookupError("an invalid job asks for nothing")
    asked = _asked(queued)
    return workload.build(parsed.job, asked, _priority(context, asked))


def _asked(queued: Queued) -> workload.QuotaRequest:
    if queued.asked is None:
        raise LookupError("an invalid job asks for nothing")
    return queued.asked


def _found(queued: Queued) -> workload.Workload:
    if queued.found is None:
        raise LookupError("the step is for a Workload that exists")
    return queued.found


def _patch(context: Context, parsed: Parsed, queued: Queued, body: Mapping[str, Any], subresource: str = "") -> None:
    """Patch the Workload as it was read: a request of a reconcile that is late is refused with 409."""
    found = _found(queued)
    metadata = {**as_mapping(body.get("metadata")), "uid": found.uid, "resourceVersion": found.version}
    path = _path(parsed, queued) + (f"/{subresource}" if subresource else "")
    context.client.request("PATCH", path, {**body, "metadata": metadata}, _QUERY, MERGE_PATCH)


def _path(parsed: Parsed, queued: Queued) -> str:
    return f"{_collection(parsed)}/{_found(queued).name}"


def _collection(parsed: Parsed) -> str:
    return paths.collection(_KIND.api_version, _KIND.kind, parsed.owner.namespace)


def _explain(error: ApiError, step: steps.Step) -> str:
    if error.status == 404 and isinstance(step, steps.Create) and "priorityclass" not in error.message:
        return f"the cluster has no {_KIND.plural}.{_KIND.group}; {_KIND.remedy}"
    return f"{_KIND.kind}: {error.message}"
