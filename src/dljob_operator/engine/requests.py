"""Build run requests from watch entries and cached objects: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ANY_JOB

from dljob_operator import variables
from dljob_operator.durations import parse_duration
from dljob_operator.engine.cache.predicates import RECONCILE_PERIOD_ANNOTATION
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.runner import RunRequest, Target
from dljob_operator.watches import Watch

Snapshot = Mapping[str, Mapping[str, Sequence[Object]]]
"""The owned objects of each job: `{job uid: {"Pod": [...], "Service": [...]}}`."""


@dataclass(frozen=True)
class CacheView:
    """What a run gets of the cache. None stands for no cache, so that the role reads from the API server."""

    snapshot: Snapshot | None = None
    cluster_info: Mapping[str, Any] | None = None
    """See `engine.cache.cluster_info`."""


def targets(watches: Sequence[Watch]) -> list[Target]:
    """Return all roles and playbooks that `watches` may run."""
    found = []
    for watch in watches:
        found.append(
            Target(
                target_name(watch), watch.role, watch.playbook, watch.batchable, watch.vars if watch.long_lived else {}
            )
        )
        final = watch.finalizer
        if final is not None and (final.role or final.playbook):
            found.append(Target(target_name(watch, finalizing=True), final.role, final.playbook))
    return found


def target_name(watch: Watch, *, finalizing: bool = False) -> str:
    """Return the name of the target of `watch`. A finalizer with only variables uses the role of the entry."""
    final = watch.finalizer
    own = finalizing and final is not None and (final.role or final.playbook)
    return f"{watch.gvk} finalizer" if own else str(watch.gvk)


def beside_others(
    request: RunRequest, *, is_contended: bool, taken: Mapping[str, int], continuing: Iterable[str], threads: int
) -> RunRequest:
    """Return the request with what its jobs have to know of users' changes; see RunRequest.

    `taken` are the counts of all changes and of each job. Only those of the `continuing` jobs let a large job write for
    longer. On one thread everything waits for the run of a large job, also jobs whose pods have changed: it gets none
    of these, so that its runs stay short.
    """
    changes = {key: taken[key] for key in (ANY_JOB, *continuing)} if threads > 1 else None
    return replace(request, is_contended=is_contended, changes=changes, taken=taken)


def request_for_one(
    watch: Watch,
    resource: Object,
    cache: CacheView,
    timeout: float,
    *,
    finalizing: bool = False,
) -> RunRequest:
    run_variables = variables.for_object(watch, resource, finalizing=finalizing)
    return _request(target_name(watch, finalizing=finalizing), run_variables, cache, timeout)


def request_for_many(watch: Watch, resources: Sequence[Object], cache: CacheView, timeout: float) -> RunRequest:
    request = _request(target_name(watch), variables.for_batch(watch, resources), cache, timeout)
    return replace(request, long_lived=watch.long_lived)


SHORTEST_PERIOD = 1.0
"""Seconds between two reconciles that an annotation of a job may request."""


def period_of(watch: Watch, resource: Object, default: float) -> float | None:
    """Return the seconds after which `resource` is reconciled without an event, None for never.

    The annotation of `resource` precedes the `reconcilePeriod` of the entry, which precedes `default`; an annotation of
    "0s" turns it off, and a shorter one than SHORTEST_PERIOD counts as that: a tenant must not keep the operator busy.
    Raises ValueError if the annotation is no duration.
    """
    annotation = _period_annotation(resource)
    if annotation is not None:
        period = parse_duration(annotation)
        return max(period, SHORTEST_PERIOD) if period else None
    return watch.reconcile_period or default or None


def asks_too_often(resource: Object) -> bool:
    """Whether the annotation of `resource` is a shorter period than SHORTEST_PERIOD."""
    try:
        return 0 < parse_duration(_period_annotation(resource)) < SHORTEST_PERIOD
    except ValueError:
        return False


def _period_annotation(resource: Object) -> object:
    return (resource["metadata"].get("annotations") or {}).get(RECONCILE_PERIOD_ANNOTATION)


def _request(target: str, run_variables: variables.RunVariables, cache: CacheView, timeout: float) -> RunRequest:
    values: Mapping[str, Any] = run_variables.values
    return RunRequest(target, values, run_variables.unsafe, cache.snapshot, timeout, cache.cluster_info)
