"""When a job has succeeded."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.values.constants import MODE_LOCAL, RESTART_ALWAYS
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import SUCCEEDS_BY_ALL, SUCCEEDS_BY_ANY
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState


def has_succeeded(pod: PodState) -> bool:
    """Whether the framework's container ended with 0, by itself; a sidecar that goes on is no reason to wait.

    A program that is told to go may well exit with 0: in a pod that is deleted or evicted this says nothing.
    """
    if pod.deleting:
        return False
    return pod.phase == "Succeeded" or (pod.ended is not None and pod.ended.code == 0 and not pod.disrupted)


def is_done(pod: PodState) -> bool:
    """Whether the replica has succeeded and will not run again."""
    if not has_succeeded(pod):
        return False
    return pod.phase in ("Succeeded", "Failed") or (pod.terminated and pod.restart_policy != RESTART_ALWAYS)


def succeeded(job: DLJob, observed: Observed, completed: dict[str, set[int]]) -> bool:
    """Whether ``job`` is done: its chief, or every replica of the chief's type where framework, policy or mode say so.

    ``completed`` remembers replicas (by lower-case type) whose pods succeeded and may be gone since.
    """
    done = set(completed.get(job.success_target.type.lower(), ()))
    done.update(p.index for p in observed.pods_of(job.success_target.type) if has_succeeded(p))
    if job.succeeds_by == SUCCEEDS_BY_ANY:
        return bool(done)
    if job.succeeds_by == SUCCEEDS_BY_ALL or job.mode == MODE_LOCAL:
        group = job.group(job.success_target.type)
        return group is not None and done.issuperset(range(group.replicas))
    return job.success_target.index in done
