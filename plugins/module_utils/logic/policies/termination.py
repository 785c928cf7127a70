"""Pods that should have terminated long ago: those of a node that has died stay, and their replicas wait for them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic import clock
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState

OVERDUE = 30.0
"""Seconds after the end of a pod's grace period. A kubelet that runs needs one or two."""


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
    where = f" on node {pod.node}" if pod.node else ""
    return (
        f"pod {pod.name}{more} should have terminated at {pod.terminating}{where}, and its replica waits for that: if "
        f"the node is gone, run kubectl delete pod {pod.name} --force --grace-period=0"
    )


def next_check(pods: Iterable[PodState], now: datetime) -> float | None:
    """Seconds until the first pod that terminates is overdue, ``None`` where no other pod terminates."""
    left = [-late for pod in pods if (late := _overdue_for(pod, now)) is not None and late < 0]
    return min(left, default=None)
