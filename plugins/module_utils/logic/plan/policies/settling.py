"""The time that replicas which compute have to end once a success target that only coordinates them has exited with 0.

ps-lite's scheduler exits after the last barrier, and each worker still has to save its result. A worker that fails at
that has failed the job, although it ends some tenths of a second after the scheduler. A success target that computes
itself, such as PyTorch's master, decides at once, as in training-operator.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_succeeded
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import clean_pod_policy, failure
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import RESTART_EXIT_CODE, RESTART_NEVER
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FAILS_BY_TARGET, Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import ACTION_FAIL_JOB

_SENTENCE = (
    "the {} has exited with 0: waiting up to {:.0f} s for the replicas that compute, whose failure would still count"
)


def reason(job: DLJob) -> str:
    """What the status says meanwhile. It does not change while one replica after the other ends."""
    return _SENTENCE.format(job.success_target.type, clean_pod_policy.GRACE_PERIOD)


def fails(job: DLJob, framework: Framework, observed: Observed, unfinished: Observed, now: datetime) -> bool:
    """Whether a replica of ``job``, which has succeeded otherwise, has failed for good at its end.

    The time between the ends decides, not the time of the reconcile. A pod without an end of its own, which the cluster
    takes away, counts only while the others still have time. ``unfinished`` has the pods of the replicas that have not
    succeeded.
    """
    succeeded_at = _succeeded_at(job, framework, observed)
    if not succeeded_at:
        return False
    left = clean_pod_policy.left_of_grace_period(succeeded_at, now)
    pods = tuple(
        pod
        for pod in unfinished.pods
        if _computes(pod, framework)
        and (
            left is not None
            if pod.deleting or pod.ended is None
            else _ends_in_time(pod.ended.finished_at, succeeded_at)
        )
    )
    return failure.find_failure(job, dataclasses.replace(unfinished, pods=pods)) is not None


def remaining(
    job: DLJob, framework: Framework, observed: Observed, unfinished: Observed, now: datetime
) -> float | None:
    """Seconds by which to delay the success of ``job``, ``None`` where no replica runs whose failure could count."""
    succeeded_at = _succeeded_at(job, framework, observed)
    groups = [group for group in job.groups if _may_fail(job, group)]
    runs = any(_runs(pod, framework) for group in groups for pod in unfinished.pods_of(group.type))
    return clean_pod_policy.left_of_grace_period(succeeded_at, now) if succeeded_at and runs else None


def _succeeded_at(job: DLJob, framework: Framework, observed: Observed) -> str:
    """When the success target, which has succeeded, ended (RFC 3339); "" where it does not only coordinate, or has no
    pod any more."""
    type_ = framework.type_named(job.success_target.type)
    if type_ is None or not type_.coordinates:
        return ""
    ends = (pod.ended for pod in observed.pods_of(type_.name) if has_succeeded(pod))
    return max((ended.finished_at for ended in ends if ended is not None), default="")


def _ends_in_time(finished_at: str, succeeded_at: str) -> bool:
    moment = clock.parse(finished_at)
    late = None if moment is None else clock.seconds_since(succeeded_at, moment)
    return late is not None and late <= clean_pod_policy.GRACE_PERIOD


def _may_fail(job: DLJob, group: ReplicaGroup) -> bool:
    """Whether a replica of ``group`` can fail the job, by its restart policy or by a rule."""
    if any(rule.action == ACTION_FAIL_JOB for rule in job.run_policy.failure_rules):
        return True
    is_counted = job.flavor.fails_by != FAILS_BY_TARGET and group.type != job.elastic_type
    return is_counted and group.restart_policy in (RESTART_NEVER, RESTART_EXIT_CODE)


def _runs(pod: PodState, framework: Framework) -> bool:
    return _computes(pod, framework) and pod.phase == "Running" and not (pod.deleting or pod.terminated)


def _computes(pod: PodState, framework: Framework) -> bool:
    """Whether the program of ``pod`` has a result and ends by itself. A server that fails at its end loses none."""
    type_ = framework.type_named(pod.type)
    return type_ is not None and not type_.coordinates and clean_pod_policy.ends_by_itself(pod, framework)
