"""``runPolicy.restartScope: Job``: the failure of one replica restarts all replicas of the job.

A parameter-server or all-reduce cluster rarely lets a crashed member rejoin: the others wait for it forever, or fail
too. Like JobSet, the operator then recreates all pods, for jobs that ask for it. It creates no pod before the last pod
of the previous attempt is gone: an old process could register with the new scheduler, which would count it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.batch_job import deletion as delete
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_failed
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import backoff
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import action_for
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.pod_failure_policy import COUNTED
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import (
    Progress,
    ReplicaActions,
    is_current,
    of_another_template,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, PodToCreate

KEY = "job"
"""Key in the status' ``retries`` for the number of restarts because of an error."""


def applies_to(job: DLJob) -> bool:
    return job.run_policy.restart_scope == c.RESTART_SCOPE_JOB


def attempt_of(status: Mapping[str, Any]) -> int:
    """The current attempt of a job with that status; 0 is the first."""
    attempt = status.get("attempt")
    return max(attempt, 0) if isinstance(attempt, int) else 0


def current_attempt(current: Observed, recorded: int) -> int:
    """The attempt of the newest pods of the current spec, or the ``recorded`` one if that is newer.

    A cache may have the pods of a new attempt before the status that began it. To take them for leftovers would delete
    them and restart the job once more.
    """
    return max([recorded, *(pod.attempt for pod in current.pods if not pod.deleting)])


def of_this_attempt(observed: Observed, attempt: int) -> Observed:
    """``observed`` without the pods of earlier attempts."""
    return dataclasses.replace(observed, pods=tuple(p for p in observed.pods if p.attempt == attempt))


def next_actions(job: DLJob, observed: Observed, progress: Progress, now: datetime) -> ReplicaActions:
    """Like :func:`.replicas.next_actions`, for all replicas of the job together.

    A disrupted or deleted pod is not an error and does not count for backoffLimit, unless a rule of podFailurePolicy
    says otherwise. One reconcile writes the new attempt into the status, and the next one deletes the pods of the
    previous attempt. It keeps failed pods until the restart delay has passed, because the delay starts when their
    containers ended.
    """
    old = of_another_template(job, observed, progress)
    current_pods, stale = _by_attempt(job, observed, progress, old)
    missing = [
        PodToCreate(group, index, progress.attempt)
        for group, index in job.tasks()
        if (group.type.lower(), index) not in current_pods
        and index not in progress.completed.get(group.type.lower(), ())
    ]
    decided = (pod for pod in current_pods.values() if pod.uid not in progress.undecided)
    ended = tuple(pod for pod in decided if has_failed(pod) or pod.deleting)
    others = [*current_pods, *_replicas(progress.completed)]
    # a missing pod was deleted if the job was Running, otherwise it was not created yet
    lost = (
        not stale
        and not progress.is_new_spec
        and job.status.get("phase") == c.PHASE_RUNNING
        and not all(_is_added(start, others) for start in missing)
    )
    if ended or lost:
        # those that are undecided go with the attempt, too
        has_error = any(_is_error(job, p) for p in current_pods.values())
        retries = dict(progress.retries)
        counts = {**retries, KEY: retries.get(KEY, 0) + 1} if has_error else retries
        return ReplicaActions((), (), counts, ended, 0.0, begins=progress.attempt + 1)

    # as in `replicas`, the others go before those in which they have started processes
    is_anew = any(not pod.deleting for pod in old)
    first = [pod for pod in stale if is_anew and pod.type not in _resizable(job) and not pod.deleting]
    deletions, wait = deletions_of(first or stale, now)
    awaited = tuple(pod for pod in stale if pod.deleting) if missing else ()
    starts = tuple(missing) if not stale else ()
    return ReplicaActions(starts, deletions, dict(progress.retries), (), wait or None, awaited=awaited)


def _by_attempt(
    job: DLJob, observed: Observed, progress: Progress, old: Sequence[PodState]
) -> tuple[dict[tuple[str, int], PodState], list[PodState]]:
    """The pods of the present attempt, by replica, and the others. ``old`` are those of another template."""
    sizes = {group.type.lower(): group.replicas for group in job.groups}
    resizable = _resizable(job)
    is_anew = any(not pod.deleting for pod in old)
    current_pods: dict[tuple[str, int], PodState] = {}
    stale: list[PodState] = []
    for pod in observed.pods:
        # one that terminates with them was deleted for them, and has not failed
        begins_anew = pod.type not in resizable and (is_anew or bool(old and pod.deleting))
        is_kept = is_current(pod, progress) and not begins_anew
        is_member = is_kept and pod.index < sizes.get(pod.type, 0)
        if is_member and pod.attempt == progress.attempt:
            current_pods[pod.type, pod.index] = pod
        else:
            stale.append(pod)
    return current_pods, stale


def _resizable(job: DLJob) -> set[str]:
    return {group.type.lower() for group in job.groups if group.resizable}


def _replicas(completed: Mapping[str, set[int]]) -> Iterator[tuple[str, int]]:
    return ((type_, index) for type_, indexes in completed.items() for index in indexes)


def _is_added(start: PodToCreate, others: Iterable[tuple[str, int]]) -> bool:
    """Whether a larger number of replicas explains that this one has no pod: the others have lower indexes."""
    type_ = start.group.type.lower()
    return start.group.resizable and all(index < start.index for other, index in others if other == type_)


def deletions_of(stale: Sequence[PodState], now: datetime) -> tuple[tuple[Deletion, ...], float]:
    """The deletions of the pods of earlier attempts, and the seconds until those that it leaves may be deleted.

    It leaves the pods that have failed until the longest restart delay of one of them has passed.
    """
    wait = max((backoff.remaining_delay(p, now) for p in stale if _delays_restart(p)), default=0.0)
    return tuple(delete(p) for p in stale if not p.deleting and not (wait > 0 and _delays_restart(p))), wait


def _is_error(job: DLJob, pod: PodState) -> bool:
    """Whether the end of ``pod`` counts for backoffLimit."""
    action = action_for(job, pod)
    return action in COUNTED if action else _delays_restart(pod)


def _delays_restart(pod: PodState) -> bool:
    return has_failed(pod) and not pod.disrupted and not pod.deleting
