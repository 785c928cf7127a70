"""What is left of a finished job's pods and Services."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.success import has_succeeded
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import CLEAN_ALL, CLEAN_NONE
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Deletion, Observed, PodView


def leftovers(job: DLJob, observed: Observed) -> tuple[Deletion, ...]:
    """What ``cleanPodPolicy`` says to delete now that ``job`` is finished; finished pods keep their logs under Running."""
    policy = job.run_policy.clean_pod_policy
    if policy == CLEAN_NONE:
        return ()
    pods = tuple(
        Deletion("Pod", p.name, p.uid) for p in observed.pods if not p.deleting and (policy == CLEAN_ALL or _runs(p))
    )
    # nothing is left that the names could lead to
    return pods + tuple(Deletion("Service", name, uid) for name, uid in observed.services.items())


def _runs(pod: PodView) -> bool:
    return pod.phase not in ("Succeeded", "Failed") and not (pod.stopped and has_succeeded(pod))


def is_clean(job: DLJob, observed: Observed) -> bool:
    """Whether nothing is left to delete or to wait for."""
    if job.run_policy.clean_pod_policy == CLEAN_NONE:
        return True
    waiting = any(p.deleting for p in observed.pods)
    return not waiting and not leftovers(job, observed)
