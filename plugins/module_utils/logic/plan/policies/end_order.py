"""The order in which the processes of a job have ended, where one may have ended because of another.

The reports do not have that order: the kubelets report to the second, and a launcher such as torchrun ends seconds
after the process in it that the kernel has killed. The survivors may have ended before.
"""

from __future__ import annotations

import math

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState

REPORT_LAG = 3
"""Seconds by which two ends may be reported in the wrong order. A pod's status is up to a second late, and times have
no fractions. So long a failure that would fail the job waits for the report of an earlier loss."""
LEAD = REPORT_LAG - 1
"""Seconds by which what follows from a kill may end before it: later the failure is decided."""
KILLED = (137, 143)
"""By SIGKILL or SIGTERM. A program raises the other signals itself, also because it has lost a peer: JAX ends with 139
then, NCCL's watchdog with 134."""
OUTSIDE, SIGNAL, OWN = range(3)


def is_taken(pod: PodState) -> bool:
    """Whether somebody deletes ``pod``, or the cluster takes it away."""
    return bool(pod.deleting) or pod.disrupted


def origin(pod: PodState) -> int:
    """What has ended ``pod``, which has failed or is being deleted: something outside of the job's programs, a signal
    of the program's own, or neither."""
    ended = pod.ended
    # the reason of a pod is the kubelet's; that of a batch Job is not about the program
    if is_taken(pod) or ended is None or ended.code == 0 or (pod.reason and pod.batch_job is None):
        return OUTSIDE
    if ended.reason == c.REASON_OOM or ended.code in KILLED:
        return OUTSIDE
    return SIGNAL if 128 < ended.code <= 128 + 64 else OWN


def rank(time: float, origin_: int) -> tuple[float, int]:
    """The sort key of an end at ``time``. An end from outside also precedes those that were reported shortly before."""
    return time - (LEAD if origin_ == OUTSIDE else 0), origin_


def rank_of(pod: PodState) -> tuple[float, int]:
    """The sort key of the end of the pod's container. A pod that the cluster ended before that comes first."""
    ended = clock.parse(pod.ended.finished_at) if pod.ended is not None and pod.ended.code else None
    return rank(ended.timestamp(), origin(pod)) if ended else (-math.inf, OUTSIDE)
