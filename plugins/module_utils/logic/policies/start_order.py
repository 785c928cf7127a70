"""Start order: which replica types wait until other types exist, run, are ready or have completed.

The framework's declaration (``starts_after``) and the job's ``runPolicy.startupPolicy`` say so; both apply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    AFTER_COMPLETED,
    AFTER_CREATED,
    AFTER_READY,
    AFTER_RUNNING,
    Framework,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState

_STATES = {
    AFTER_CREATED: "created",
    AFTER_READY: "ready",
    AFTER_RUNNING: "running",
    AFTER_COMPLETED: "completed",
}


def waiting_types(
    job: DLJob, framework: Framework, current: Observed, completed: Mapping[str, set[int]], in_gang: bool = False
) -> dict[str, str]:
    """The types of ``job`` of which no pod may be created yet, each with what it waits for, as a sentence.

    ``current`` has the pods of the current spec and attempt, ``completed`` the indexes of the replicas that have
    succeeded, by lower-case type. ``in_gang`` says whether a gang scheduler starts the pods. Types that the job does
    not have delay nothing. Existing pods stay, even if a replica of an earlier type is no longer ready.
    """
    found: dict[str, str] = {}
    for type_, other, state in _dependencies(job, framework, in_gang):
        if type_ not in found and not _has_reached(job, other, state, current, completed):
            found[type_] = f"{type_} starts once all replicas of {other} are {_STATES[state]}"
    return found


def types_after_gang(
    job: DLJob, framework: Framework, current: Observed, completed: Mapping[str, set[int]]
) -> frozenset[str]:
    """The types that a gang scheduler cannot start with the others, since these have to start first.

    Arguments as in :func:`waiting_types`. A type that only waits for others to exist is none of them.
    """
    return frozenset(
        type_
        for type_, other, state in _dependencies(job, framework, in_gang=True)
        if state != AFTER_CREATED and not _has_reached(job, other, state, current, completed)
    )


def reason(waiting: Mapping[str, str], job: DLJob, current: Observed, completed: Mapping[str, set[int]]) -> str:
    """The sentence for the status: about the first waiting type that lacks pods, "" without one."""
    lacking = (type_ for type_ in waiting if (group := job.group(type_)) and _lacks_pods(group, current, completed))
    return next((waiting[type_] for type_ in lacking), "")


def _lacks_pods(group: ReplicaGroup, current: Observed, completed: Mapping[str, set[int]]) -> bool:
    present = {pod.index for pod in current.pods_of(group.type) if not pod.deleting}
    return not present.union(completed.get(group.type.lower(), ())).issuperset(range(group.replicas))


def _dependencies(job: DLJob, framework: Framework, in_gang: bool) -> Iterator[tuple[str, str, str]]:
    options = {**job.options, **job.object_options}
    for type_ in framework.replica_types:
        declared = job.flavor.starts_after(type_, options, in_gang)
        for others in (declared, job.run_policy.starts_after.get(type_.name, {})):
            yield from ((type_.name, other, state) for other, state in others.items())


def _has_reached(job: DLJob, type_: str, state: str, current: Observed, completed: Mapping[str, set[int]]) -> bool:
    group = job.group(type_)
    if group is None:
        return True
    reached = set(completed.get(type_.lower(), ()))
    reached |= {pod.index for pod in current.pods_of(type_) if _is_in(pod, state) and not pod.deleting}
    return reached.issuperset(range(group.replicas))


def _is_in(pod: PodState, state: str) -> bool:
    if state == AFTER_COMPLETED:
        return False
    if state == AFTER_CREATED:
        return True
    return pod.is_ready if state == AFTER_READY else pod.phase == "Running"
