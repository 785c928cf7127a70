"""From watch entries and cached objects to what the warm runner is asked: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dljob_operator import variables
from dljob_operator.durations import parse_duration
from dljob_operator.engine.predicates import RECONCILE_PERIOD_ANNOTATION
from dljob_operator.engine.transforms import Object
from dljob_operator.runner import RunRequest, Target
from dljob_operator.watches import Watch

Snapshot = Mapping[str, Mapping[str, Sequence[Object]]]
"""What each job owns: `{job uid: {"Pod": [...], "Service": [...]}}`."""


ClusterInfo = Mapping[str, Any]
"""What is known of the cluster besides the jobs; see `engine.cluster_info`."""


def targets(watches: Sequence[Watch]) -> list[Target]:
    """Return everything that `watches` may run."""
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
    """Return what runs for `watch`; a finalizer of variables alone is run by the entry's own role."""
    final = watch.finalizer
    own = finalizing and final is not None and (final.role or final.playbook)
    return f"{watch.gvk} finalizer" if own else str(watch.gvk)


def request_for_one(
    watch: Watch,
    obj: Object,
    snapshot: Snapshot,
    timeout: float,
    *,
    cluster_info: ClusterInfo | None = None,
    finalizing: bool = False,
) -> RunRequest:
    handed = variables.for_object(watch, obj, finalizing=finalizing)
    return _request(target_name(watch, finalizing=finalizing), handed, snapshot, timeout, cluster_info)


def request_for_many(
    watch: Watch, objs: Sequence[Object], snapshot: Snapshot, timeout: float, *, cluster_info: ClusterInfo | None = None
) -> RunRequest:
    request = _request(target_name(watch), variables.for_batch(watch, objs), snapshot, timeout, cluster_info)
    return replace(request, long_lived=watch.long_lived)


def period_of(watch: Watch, obj: Object, default: float) -> float | None:
    """Return after how many seconds `obj` is reconciled even if nothing happens, None for never.

    Its annotation decides, else the entry's `reconcilePeriod`, else `default`; an annotation of "0s" turns
    it off. Raises ValueError where the annotation is no duration.
    """
    annotation = (obj["metadata"].get("annotations") or {}).get(RECONCILE_PERIOD_ANNOTATION)
    if annotation is not None:
        return parse_duration(annotation) or None
    return watch.reconcile_period or default or None


def _request(
    target: str, handed: variables.RunVariables, snapshot: Snapshot, timeout: float, cluster_info: ClusterInfo | None
) -> RunRequest:
    values: Mapping[str, Any] = handed.values
    return RunRequest(target, values, handed.unsafe, snapshot, timeout, cluster_info)
