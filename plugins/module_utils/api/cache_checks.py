"""What a plan presumes that only the API server knows, because an engine's cache may be behind.

A cache that lags shows a pod that has ended as running, and one that was just created not at all. Some plans would do
harm then: they say so in their ``presumes_*`` fields, and the reconcile asks the API server before it writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.logic import batch_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.ownership import controller_uid
from ansible_collections.dljob.operator.plugins.module_utils.logic.parsed import Parsed
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, Plan


def reason_to_wait(context: Context, parsed: Parsed, observed: Observed, planned: Plan) -> str | None:
    """What the engine's cache lacks of that which ``planned`` presumes. ``None`` where it lacks nothing, or where the
    reconcile has just read all from the API server."""
    if not context.reader.has_watch:
        return None
    checks = (
        (planned.presumes_deleted_pods, partial(has_all_pods, observed), "pods of the job"),
        (planned.presumes_running, partial(still_run, planned.presumes_running), "the end of pods of the job"),
        (planned.presumes_kept, partial(are_kept, planned.presumes_kept), "deletions of pods of the job"),
        (
            planned.presumes_ended_launchers,
            partial(have_launchers_ended, observed, planned.presumes_ended_launchers),
            "a pod of a batch Job of the job",
        ),
    )
    lacks = (what for presumed, holds, what in checks if presumed and not holds(context, parsed))
    return next((f"the cache lacks {what}" for what in lacks), None)


def is_spec_old(context: Context, parsed: Parsed, planned: Plan) -> bool:
    """Whether ``planned`` presumes the current spec, or a user :func:`may have changed <may_have_changed>` the job, and
    the API server has another spec than the engine's cache, or the job no longer."""
    if not context.reader.has_watch:
        return False
    is_asked = planned.presumes_current_spec or may_have_changed(context, parsed)
    return is_asked and not context.reader.has_spec(parsed.resource)


def may_have_changed(context: Context, parsed: Parsed) -> bool:
    """Whether a user may have deleted or edited the job since the engine took it, seconds ago where it waited in its
    batch. Another job may have the same count, and a label changes no spec, so only the API server knows."""
    return context.since_taken is not None and context.since_taken.of(parsed.owner.uid)


def has_all_pods(observed: Observed, context: Context, parsed: Parsed) -> bool:
    """Whether ``observed`` has all pods of the job, and batch Jobs that run some, that the API server has."""
    known = {batch_job.deletion(pod).uid for pod in observed.pods}
    return all(one["uid"] in known for one in _replicas(context, parsed))


def still_run(uids: Collection[str], context: Context, parsed: Parsed) -> bool:
    """Whether the API server has active pods of these uids, and shows an end of none of them."""
    pods = context.reader.pods(parsed.owner)
    found = (pod for pod in pods if pod["metadata"]["uid"] in uids)
    states = build_observed_state(parsed.owner, parsed.framework.container, found, []).pods
    return len(states) == len(uids) and all(state.is_active and state.ended is None for state in states)


def are_kept(uids: Collection[str], context: Context, parsed: Parsed) -> bool:
    """Whether the API server has pods, or batch Jobs, of all these uids, and none of them terminates."""
    replicas = _replicas(context, parsed)
    return {one["uid"] for one in replicas if not one.get("deletionTimestamp")}.issuperset(uids)


def have_launchers_ended(observed: Observed, types: Collection[str], context: Context, parsed: Parsed) -> bool:
    """Whether all pods of these replica ``types`` that the API server has, and whose batch Job is gone, have ended."""
    present = {one.uid for (kind, _), one in observed.owned_objects.items() if kind == batch_job.KIND}
    found = (pod for type_ in types for pod in context.reader.pods_of_type(parsed.owner, type_))
    pods = (pod for pod in found if controller_uid(pod, parsed.owner.namespace) not in present)
    return not build_observed_state(parsed.owner, parsed.framework.container, pods, []).remaining


def _replicas(context: Context, parsed: Parsed) -> Iterator[Mapping[str, Any]]:
    """The metadata of the pods of the job, and of the batch Jobs that run some, that the API server has."""
    yield from (pod["metadata"] for pod in context.reader.pods(parsed.owner))
    if batch_job.KIND in parsed.framework.owns:
        jobs = context.reader.batch_jobs(parsed.owner)
        yield from (one["metadata"] for one in jobs if batch_job.runs_replica(one))
