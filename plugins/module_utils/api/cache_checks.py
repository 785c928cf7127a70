"""What a plan presumes that only the API server knows, because an engine's cache may be behind.

A cache that lags shows a pod that has ended as running, and one that was just created not at all. Some plans would do
harm then: they say what they presume, and the reconcile asks the API server before it writes. The pods of another
operator (``PODS_ARE_KNOWN``), which no cache has, are read in :mod:`.reconcile`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import controller_uid
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import batch_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parsed import Parsed
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import clean_pod_policy
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Fact, Plan


def reason_to_wait(context: Context, parsed: Parsed, observed: Observed, planned: Plan) -> str | None:
    """The first thing that ``planned`` presumes and that the API server denies, as the message of an outcome.

    ``None`` where it denies nothing, or where the reconcile has just read all from the API server.
    """
    if not context.reader.has_watch:
        return None
    asked = ((check, presumed.of) for check in _CHECKS if (presumed := planned.presumed(check.fact)))
    lacks = (check.what for check, of in asked if not check.holds(context, parsed, observed, of))
    return next((f"the cache lacks {what}" for what in lacks), None)


def has_older_spec(context: Context, parsed: Parsed, planned: Plan) -> bool:
    """Whether the engine's cache has an older spec of the job, or has the job although it is deleted.

    The API server is asked only where ``planned`` presumes the current spec, or where a user may have changed the job.
    """
    if not context.reader.has_watch:
        return False
    is_asked = planned.presumed(Fact.SPEC_IS_CURRENT) is not None or _may_have_changed(context, parsed)
    return is_asked and not context.reader.has_spec(parsed.resource)


def _may_have_changed(context: Context, parsed: Parsed) -> bool:
    """Whether a user may have deleted or edited the job since the engine took it, seconds ago where it waited in its
    batch. Another job may have the same count, and a label changes no spec, so only the API server knows."""
    return context.since_taken is not None and context.since_taken.of(parsed.owner.uid)


def _has_all_pods(context: Context, parsed: Parsed, observed: Observed, of: Collection[str]) -> bool:
    """Whether ``observed`` has all pods of the job, and batch Jobs that run some, that the API server has."""
    known = {batch_job.deletion(pod).uid for pod in observed.pods}
    return all(one["uid"] in known for one in _replicas(context, parsed))


def _still_run(context: Context, parsed: Parsed, observed: Observed, uids: Collection[str]) -> bool:
    """Whether the API server has active pods of these uids, and shows an end of none of them."""
    pods = context.reader.pods(parsed.owner)
    found = (pod for pod in pods if pod["metadata"]["uid"] in uids)
    states = build_observed_state(parsed.owner, parsed.framework.container, found, []).pods
    return len(states) == len(uids) and all(state.is_active and state.ended is None for state in states)


def _are_unstarted(context: Context, parsed: Parsed, observed: Observed, uids: Collection[str]) -> bool:
    """Whether none of the pods of these uids that the API server has has started."""
    found = (pod for pod in context.reader.pods(parsed.owner) if pod["metadata"]["uid"] in uids)
    states = build_observed_state(parsed.owner, parsed.framework.container, found, []).pods
    return all(clean_pod_policy.never_started(state) for state in states)


def _are_kept(context: Context, parsed: Parsed, observed: Observed, uids: Collection[str]) -> bool:
    """Whether the API server has pods, or batch Jobs, of all these uids, and none of them terminates."""
    replicas = _replicas(context, parsed)
    return {one["uid"] for one in replicas if not one.get("deletionTimestamp")}.issuperset(uids)


def _have_launchers_ended(context: Context, parsed: Parsed, observed: Observed, types: Collection[str]) -> bool:
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


@dataclass(frozen=True)
class _Check:
    """Whether the API server confirms a fact, and what the cache lacks where it does not."""

    fact: Fact
    holds: Callable[[Context, Parsed, Observed, Collection[str]], bool]
    what: str


_CHECKS = (
    _Check(Fact.PODS_ARE_DELETED, _has_all_pods, "pods of the job"),
    _Check(Fact.STILL_RUNS, _still_run, "the end of pods of the job"),
    _Check(Fact.IS_UNSTARTED, _are_unstarted, "the start of pods of the job"),
    _Check(Fact.IS_KEPT, _are_kept, "deletions of pods of the job"),
    _Check(Fact.LAUNCHERS_HAVE_ENDED, _have_launchers_ended, "a pod of a batch Job of the job"),
)
"""In the order in which they are asked."""
