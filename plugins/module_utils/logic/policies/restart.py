"""How long to wait before a failed replica gets a new pod."""

from __future__ import annotations

from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic import clock
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState

FIRST_DELAY = 1.0
LONGEST_DELAY = 300.0
"""Seconds; the delay doubles from the first to the longest, which is the kubelet's own for a crashing container."""


def delay(attempt: int) -> float:
    """Seconds between the end of ``attempt`` (0 is the first) and the next one."""
    return min(FIRST_DELAY * 2 ** min(attempt, 30), LONGEST_DELAY)


def remaining_delay(pod: PodState, now: datetime) -> float:
    """Seconds still to wait before the failed ``pod`` is replaced; 0 when it is time.

    Counted from its container's end, or where that never ran (a node that would not take it) from the pod's creation.
    """
    ended = clock.seconds_since((pod.ended.finished_at if pod.ended else "") or pod.created, now)
    if ended is None:
        return 0.0
    return max(0.0, delay(pod.attempt) - ended)
