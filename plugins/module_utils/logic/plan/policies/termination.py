"""Pods that a replica waits for because they terminate, and those that should have terminated long ago: the pods of a
node that has died stay."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState

NOTICED = 5.0
"""Seconds after the deletion of a pod from which the status says that a replica waits for its end. An ordinary restart
takes less, and each write of a status costs a request."""
OVERDUE = 30.0
"""Seconds after the end of a pod's grace period. A kubelet that runs needs one or two."""
_AWAITED = "waiting until "


def _noticed_for(pod: PodState, now: datetime) -> float | None:
    """Seconds since ``pod``, which is being deleted, should have been noticed, negative before."""
    if pod.terminating:
        late = clock.seconds_since(pod.terminating, now)  # the time at which the grace period ends
        return None if late is None else late + pod.grace_period - NOTICED
    late = clock.seconds_since(pod.deleting, now)  # of a Job without a pod, which has no grace period
    return None if late is None else late - NOTICED


def _overdue_for(pod: PodState, now: datetime) -> float | None:
    """Seconds since ``pod`` should have been reported, negative before; ``None`` where it is not being deleted."""
    late = clock.seconds_since(pod.terminating, now)  # the time at which the grace period ends
    return None if late is None else late - OVERDUE


def stuck(pods: Iterable[PodState], now: datetime) -> str:
    """A sentence about the first pod that does not terminate, "" where there is none. It does not change with time."""
    found = [pod for pod in pods if (late := _overdue_for(pod, now)) is not None and late >= 0]
    if not found:
        return ""
    pod = min(found, key=lambda one: one.name)
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    if pod.finalizers and not (pod.is_active and pod.grace_period):
        return (
            f"pod {pod.name}{more} has ended, and its replica waits for who has set its finalizers to remove them: "
            f"{', '.join(pod.finalizers)}"
        )
    where = f" on node {pod.node}" if pod.node else ""
    return (
        f"pod {pod.name}{more} should have terminated at {pod.terminating}{where}, and its replica waits for that: if "
        f"the node is gone, run kubectl delete pod {pod.name} --force --grace-period=0"
    )


def on_lost_node(job: DLJob, pods: Iterable[PodState]) -> str:
    """A sentence about the node of pods that terminate and are probably lost with it, "" where there are none.

    It names no pod and no number of them, so it stays the same while Kubernetes evicts one after the other.
    """
    node = min((pod.node for pod in pods if _is_lost(pod)), default="")
    if not node:
        return ""
    return (
        f"node {node} is probably lost: Kubernetes has evicted the job's pods from it and cannot end them, and their "
        f"replicas wait for that; if the node is gone, run kubectl delete pods --field-selector spec.nodeName={node} "
        f"-l {c.LABEL_JOB_UID}={job.uid} --force --grace-period=0"
    )


def _is_lost(pod: PodState) -> bool:
    """Whether the node of ``pod`` has stopped reporting: then Kubernetes itself marks the pods as not ready, and evicts
    them later by a taint. On a healthy node that somebody has tainted, a pod is ready until its containers end."""
    return bool(pod.terminating and pod.node) and pod.evicted_by_taint and pod.is_active and not pod.is_ready


def noticed(awaited: Iterable[PodState], now: datetime, before: str) -> str:
    """What :func:`waiting` says of those of the ``awaited`` pods that have terminated for longer than usual."""
    return waiting(
        (_name(pod) for pod in awaited if (late := _noticed_for(pod, now)) is not None and late >= 0), before
    )


def waiting(names: Iterable[str], before: str) -> str:
    """A sentence about objects that terminate, for whose names (``Pod/a``) the job waits; "" where there are none.

    ``before`` is the present reason. It stays as long as the object that it names is there, so that the end of each
    other one writes no status.
    """
    found = sorted(names)
    if not found:
        return ""
    if before.startswith(_AWAITED) and before.removeprefix(_AWAITED).partition(" ")[0].rstrip(",") in found:
        return before
    if len(found) == 1:
        return f"{_AWAITED}{found[0]}, which terminates, is gone"
    return f"{_AWAITED}{found[0]} and {len(found) - 1} more, which terminate, are gone"


def next_check(pods: Iterable[PodState], awaited: Iterable[PodState], now: datetime) -> float | None:
    """Seconds until one of the ``awaited`` pods is to be noticed, or the first pod that terminates is overdue; ``None``
    where there is neither."""
    lates = (*(_noticed_for(pod, now) for pod in awaited), *(_overdue_for(pod, now) for pod in pods))
    return min((-late for late in lates if late is not None and late < 0), default=None)


def _name(pod: PodState) -> str:
    """The name that the replica's next pod or Job needs."""
    return f"Job/{pod.batch_job.name}" if pod.batch_job else f"Pod/{pod.name}"
