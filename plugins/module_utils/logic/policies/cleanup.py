"""What is left of a finished job's pods and Services, and of what the pods of a large one read alike."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.environment import shared_env_configmap
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    CLEAN_ALL,
    CLEAN_NONE,
    CLEAN_RUNNING,
    RESTART_ALWAYS,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Deletion, Observed

GRACE_PERIOD = 5.0
"""Seconds that the replicas of a succeeded job have to end by themselves."""


def cleanup_targets(job: DLJob, observed: Observed, kept: Collection[str] = ()) -> tuple[Deletion, ...]:
    """What ``cleanPodPolicy`` says to delete of a finished job; under Running, pods that ended stay for their logs.

    Services named in ``kept`` outlive the training.
    """
    policy = job.run_policy.clean_pod_policy
    if policy == CLEAN_NONE:
        return ()
    pods = tuple(
        Deletion("Pod", p.name, p.uid) for p in observed.pods if not p.deleting and (policy == CLEAN_ALL or p.is_active)
    )
    # nothing is left that the names could lead to, or that reads what was told to all
    services = tuple(Deletion("Service", name, uid) for name, uid in observed.services.items() if name not in kept)
    return pods + services + shared_env_configmap.deletions(observed)


def is_clean(job: DLJob, observed: Observed, kept: Collection[str] = ()) -> bool:
    """Whether nothing is left to delete or to wait for."""
    if job.run_policy.clean_pod_policy == CLEAN_NONE:
        return True
    waiting = any(p.deleting for p in observed.pods)
    return not waiting and not cleanup_targets(job, observed, kept)


def grace_period(
    job: DLJob, framework: Framework, observed: Observed, succeeded_at: str | None, now: datetime
) -> float | None:
    """Seconds for which a succeeded job is left as it is, ``None`` where nobody's own end is waited for.

    The replica that decides is often the first to be through: ps-lite's scheduler ends together with the workers, and
    the kubelet reports one of them before the others. A worker deleted then would take along the log which Running is
    to keep. Until they have ended, workers need their servers, and the names of all.
    """
    ago = clock.seconds_since(succeeded_at, now)
    # a clock may be behind the one that said when
    if job.run_policy.clean_pod_policy != CLEAN_RUNNING or ago is None or abs(ago) >= GRACE_PERIOD:
        return None
    for pod in observed.pods:
        type_ = framework.type_named(pod.type)
        ends = type_ is not None and not type_.long_running and pod.restart_policy != RESTART_ALWAYS
        if ends and pod.phase == "Running" and pod.is_active and not pod.deleting:
            return GRACE_PERIOD - ago
    return None
