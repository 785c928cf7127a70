"""Start order: which replica types wait until other types exist, run, are ready or have completed.

The framework's declaration (``starts_after``) and the job's ``runPolicy.startupPolicy`` say so; both apply.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import lost_pods
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import (
    AFTER_COMPLETED,
    AFTER_CREATED,
    AFTER_READY,
    AFTER_RUNNING,
    Framework,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState

_STATES = {
    AFTER_CREATED: "created",
    AFTER_READY: "ready",
    AFTER_RUNNING: "running",
    AFTER_COMPLETED: "completed",
}


@dataclass(frozen=True)
class Wait:
    """``type`` starts once all replicas of ``other`` are in ``state``, one of the ``AFTER_`` constants."""

    type: str
    other: str
    state: str

    def __str__(self) -> str:
        return f"{self.type} starts once all replicas of {self.other} are {_STATES[self.state]}"


def waits(
    job: DLJob, framework: Framework, current: Observed, completed: Mapping[str, set[int]], in_gang: bool
) -> tuple[Wait, ...]:
    """What types of ``job`` wait for: no pod of these may be created yet.

    ``current`` has the pods of the current spec and attempt, ``completed`` the indexes of the replicas that have
    succeeded, by lower-case type. ``in_gang`` says whether a gang scheduler starts the pods. Types that the job does
    not have delay nothing. Existing pods stay, even if a replica of an earlier type is no longer ready.
    """
    return tuple(
        wait
        for wait in _declared(job, framework, in_gang)
        if not _has_reached(job, wait.other, wait.state, current, completed)
    )


def types_after_gang(waiting: Collection[Wait]) -> frozenset[str]:
    """The types that a gang scheduler cannot start with the others, since these have to start first.

    A type that only waits for others to exist is none of them.
    """
    return frozenset(wait.type for wait in waiting if wait.state != AFTER_CREATED)


def reason(waiting: Collection[Wait], job: DLJob, current: Observed, completed: Mapping[str, set[int]]) -> str:
    """The sentence for the status: about the first waiting type that lacks pods, "" without one."""
    lacking = (wait for wait in waiting if not _has_reached(job, wait.type, AFTER_CREATED, current, completed))
    return next(map(str, lacking), "")


def _declared(job: DLJob, framework: Framework, in_gang: bool) -> Iterator[Wait]:
    options = {**job.options, **job.object_options}
    for type_ in framework.replica_types:
        declared = job.flavor.starts_after(type_, options, in_gang)
        for others in (declared, job.run_policy.starts_after.get(type_.name, {})):
            yield from (Wait(type_.name, other, state) for other, state in others.items())


def _has_reached(job: DLJob, type_: str, state: str, current: Observed, completed: Mapping[str, set[int]]) -> bool:
    group = job.group(type_)
    if group is None:
        return True
    reached = set(completed.get(type_.lower(), ()))
    reached |= {pod.index for pod in current.pods_of(type_) if _is_in(pod, state) and not pod.deleting}
    if reached and type_ == job.elastic_type:
        reached |= {pod.index for pod in lost_pods(job, current)}  # the others go on without these
    return reached.issuperset(range(group.replicas))


def _is_in(pod: PodState, state: str) -> bool:
    if state == AFTER_COMPLETED:
        return False
    if state == AFTER_CREATED:
        return True
    return pod.is_ready if state == AFTER_READY else pod.phase == "Running"
