"""A long-running replica that exits with 0 while the success target needs it.

An sshd does so after SIGTERM. mpirun then exits with 0 (Open MPI 5) or 255 (4.1), and the exit of the worker would
count as its success. It counts as a disruption where

- the type of the success target declares ``hides_losses``, and its process ran then and has ended soon after,
- another long-running replica still runs some seconds later: processes that end after the work end together,
- the policy of the replica is not Never.

A process that exits with 0 so a second time is believed: the same may happen in each run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_succeeded, is_done
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import hidden_losses, losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.end_order import REPORT_LAG
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import Loss
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import key
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState, Termination


def mark(job: DLJob, framework: Framework, observed: Observed, now: datetime) -> tuple[Observed, float | None]:
    """``observed`` with such pods marked, as ones that the cluster has ended, and the seconds until that is decided."""
    stopped = _stopped(job, framework, observed)
    if not stopped:
        return observed, None
    known = losses.read(job.status)
    uids = {uid for uid, pod in stopped.items() if known is not None and _is_last(known, pod)}
    if _others_run(framework, observed, stopped):
        for uid, pod in stopped.items():
            end = next(_ends_after(job, observed, known, pod), None)
            if end is None or uid in uids:
                continue
            left = REPORT_LAG - (clock.seconds_since(end.finished_at, now) or 0)
            if 0 < left <= REPORT_LAG:
                return observed, left
            uids.add(uid)
    pods = tuple(_marked(job, pod) if pod.uid in uids else pod for pod in observed.pods)
    return dataclasses.replace(observed, pods=pods), None


def _stopped(job: DLJob, framework: Framework, observed: Observed) -> dict[str, PodState]:
    """By uid, the pods of long-running replicas that have exited with 0 and may run again."""
    target = framework.type_named(job.success_target.type)
    if target is None or not target.hides_losses:
        return {}
    return {
        pod.uid: pod
        for group in job.groups
        if group.restart_policy != c.RESTART_NEVER and _is_long_running(framework, group.type)
        for pod in observed.pods_of(group.type)
        if pod.ended is not None and has_succeeded(pod) and not pod.disrupted
    }


def _is_long_running(framework: Framework, name: str) -> bool:
    type_ = framework.type_named(name)
    return type_ is not None and type_.long_running


def _others_run(framework: Framework, observed: Observed, stopped: Collection[str]) -> bool:
    return any(
        pod.phase == "Running" and not (pod.deleting or pod.terminated or pod.uid in stopped)
        for pod in observed.pods
        if _is_long_running(framework, pod.type)
    )


def _ends_after(job: DLJob, observed: Observed, known: Loss | None, stopped: PodState) -> Iterator[Termination]:
    """The ends of the success target that the end of the pod ``stopped`` explains."""
    time = _end_time(stopped)
    if time is None:
        return
    for pod in observed.pods_of(job.success_target.type):
        is_believed = known is not None and key(pod.type, pod.index) in known.hidden
        for end in (pod.ended, pod.last_failure and pod.last_failure.ended):
            if end and not (end.code == 0 and is_believed) and hidden_losses.follows(end, time):
                yield end


def _is_last(known: Loss, stopped: PodState) -> bool:
    return known.uid == stopped.uid and known.time + known.lag == _end_time(stopped)


def _end_time(stopped: PodState) -> int | None:
    return clock.seconds(stopped.ended.finished_at) if stopped.ended else None


def _marked(job: DLJob, pod: PodState) -> PodState:
    message = f"exited with 0 while the {job.success_target.type.lower()} ran"
    lost = dataclasses.replace(pod, reason="Completed", message=message, ended_early=True)
    # under Always the kubelet has started it again
    return dataclasses.replace(lost, phase="Failed", disrupted=True) if is_done(pod) else lost
