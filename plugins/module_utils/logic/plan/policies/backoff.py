"""How long to wait before a failed replica gets a new pod."""

from __future__ import annotations

from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
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
    The node's clock gives the first of these times. Where that is before the pod's creation or in the future, the clock
    is wrong, and the delay starts with the creation, which the API server's clock gives. Where that is in the future by
    more than the delay, the operator's own clock is wrong, and there is no delay: it would last until the clock has
    caught up. So a wrong clock about doubles it at most.
    """
    longest = delay(pod.attempt)
    created = clock.seconds_since(pod.created, now)
    ended = clock.seconds_since(pod.ended.finished_at, now) if pod.ended else None
    if ended is None or ended < 0 or (created is not None and ended > created):
        ended = created
    if ended is None:
        return 0.0
    return 0.0 if ended < -longest else min(max(0.0, longest - ended), longest)
