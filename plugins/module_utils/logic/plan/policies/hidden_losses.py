"""A success target that exits with 0 because it has lost a peer, and not since the work is done.

mpirun of Open MPI 5 does so mostly, within a second of the loss of a worker's daemon (5.0.11; 4.1.8 exits with 205,
MPICH and Intel MPI with 255). A framework declares such types with ``hides_losses``. The exit counts for nothing where
a long-running replica was lost while the process ran, at most :data:`WINDOW` seconds before it ended: the replica
starts again, once for a loss: by a clock that stands still every process would have run at the loss. A worker that has
failed for good has failed the job instead (:func:`.failure.precedes_success`).

A launcher that survives the loss of a worker (elastic Horovod) is believed: it ends later.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_succeeded
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import Loss
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import key
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import REASON_WORKER_LOST
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState, Termination

WINDOW = 5
"""Seconds from the loss to the exit, by the kubelets' clocks, which are within a second of each other."""


def find(job: DLJob, framework: Framework, current: Observed, last: Loss | None) -> tuple[PodState, ...]:
    """The pods of the success target whose exit with 0 counts for nothing. ``last`` is the last loss of the job."""
    target = framework.type_named(job.success_target.type)
    if target is None or not target.hides_losses or last is None:
        return ()
    lost = framework.type_named(last.replica.rpartition("-")[0])
    if lost is None or not lost.long_running:
        return ()
    return tuple(
        pod
        for pod in current.pods_of(target.name)
        if key(pod.type, pod.index) not in last.hidden and has_succeeded(pod) and follows(pod.ended, last.time)
    )


def noted(last: Loss, pods: Iterable[PodState]) -> Loss:
    """``last`` with these ``pods``, which start again because of it."""
    names = (key(pod.type, pod.index) for pod in pods)
    return dataclasses.replace(last, hidden=tuple(dict.fromkeys((*last.hidden, *names))))


def follows(end: Termination | None, time: int) -> bool:
    """Whether the process ran at the loss at ``time`` and has ended soon after it. The times have no fractions."""
    started = clock.seconds(end.started_at) if end else None
    finished = clock.seconds(end.finished_at) if end else None
    if started is None or finished is None:
        return False
    return started <= time <= finished <= time + WINDOW


def explain(pod: PodState, last: Loss) -> Failure:
    """Why the replica starts again."""
    message = f"{pod.display_name} has exited with 0 because of the loss of {last.replica}: {last.message}"
    return Failure(REASON_WORKER_LOST, message, pod.name, pod.container, 0)
