"""How long to wait before a failed replica gets a new pod."""

from __future__ import annotations

from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic import clock
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState

FIRST_DELAY = 1.0
LONGEST_DELAY = 300.0
"""Seconds. The delay doubles from the first to the longest, which is the kubelet's limit for CrashLoopBackOff."""


def delay(attempt: int) -> float:
    """Seconds between the end of ``attempt`` (0 is the first) and the next one."""
    return min(FIRST_DELAY * 2 ** min(attempt, 30), LONGEST_DELAY)


def remaining_delay(pod: PodState, now: datetime) -> float:
    """Seconds left before the operator replaces the failed ``pod``; 0 when the delay is over.

    The delay starts when its container ended, or with the pod's creation where that never ran (the node rejected it).
    """
    ended = clock.seconds_since((pod.ended.finished_at if pod.ended else "") or pod.created, now)
    if ended is None:
        return 0.0
    return max(0.0, delay(pod.attempt) - ended)
