"""Start order: which replica types wait until other types are ready or have completed (``starts_after``)."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.values.framework import AFTER_COMPLETED, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed


def waiting_types(
    job: DLJob, framework: Framework, current: Observed, completed: Mapping[str, set[int]]
) -> frozenset[str]:
    """The types of ``job`` of which no pod may be created yet.

    ``current`` has the pods of the current spec and attempt, ``completed`` the indexes of the replicas that have
    succeeded, by lower-case type. Types that the job does not have delay nothing. Existing pods stay, even if a replica
    of an earlier type is no longer ready.
    """
    return frozenset(
        type_.name
        for type_ in framework.replica_types
        if any(not _has_reached(job, other, state, current, completed) for other, state in type_.starts_after.items())
    )


def _has_reached(job: DLJob, type_: str, state: str, current: Observed, completed: Mapping[str, set[int]]) -> bool:
    group = job.group(type_)
    if group is None:
        return True
    reached = set(completed.get(type_.lower(), ()))
    if state != AFTER_COMPLETED:
        reached |= {pod.index for pod in current.pods_of(type_) if pod.is_ready and not pod.deleting}
    return reached.issuperset(range(group.replicas))
