"""``runPolicy.restartScope: Job``: one replica lost is the whole job begun anew.

A parameter-server or all-reduce cluster rarely takes a crashed member back: the others wait for it for ever, or end
with an error of their own. JobSet recreates the whole set then; so does this, for jobs that ask for it. No pod is made
before the last one of the attempt before has gone: a straggler would register with the new scheduler and spoil its
count.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.policies import restart
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.failure import has_failed
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.replicas import (
    PodToCreate,
    ReplicaActions,
    delete,
)
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState

KEY = "job"
"""Under which the status counts, among its ``retries``, those restarts that an error made necessary."""


def applies_to(job: DLJob) -> bool:
    return job.run_policy.restart_scope == c.RESTART_SCOPE_JOB


def attempt_of(status: Mapping[str, Any]) -> int:
    """The attempt that a job of that status is at; 0 is the first."""
    held = status.get("attempt")
    return held if isinstance(held, int) else 0


def of_this_attempt(observed: Observed, attempt: int) -> Observed:
    """``observed`` without pods of an attempt given up: what became of them tells nothing of this one."""
    return dataclasses.replace(observed, pods=tuple(p for p in observed.pods if p.attempt == attempt))


def next_actions(
    job: DLJob,
    observed: Observed,
    hashes: Mapping[str, str],
    retries: Mapping[str, int],
    completed: Mapping[str, set[int]],
    now: datetime,
    attempt: int,
) -> ReplicaActions:
    """As :func:`.replicas.next_actions`, for the job as one.

    What the cluster itself took away (a disruption, a deleted pod) is no error and counts for no limit. A restart is
    written down first. The pass that finds it written deletes the pods of the attempt before; those that failed
    are kept until the delay since their end is over, for they are what tells the time.
    """
    sizes = {group.type.lower(): group.replicas for group in job.groups}
    wanted = {type_.lower(): value for type_, value in hashes.items()}
    mine: dict[tuple[str, int], PodState] = {}
    stale: list[PodState] = []
    for pod in observed.pods:
        current = (
            pod.attempt == attempt and pod.spec_hash == wanted.get(pod.type) and pod.index < sizes.get(pod.type, 0)
        )
        if current:
            mine[pod.type, pod.index] = pod
        else:
            stale.append(pod)

    missing = [
        PodToCreate(group, index, attempt)
        for group, index in job.tasks()
        if (group.type.lower(), index) not in mine and index not in completed.get(group.type.lower(), ())
    ]
    fallen = tuple(p for p in mine.values() if has_failed(p) or p.deleting)
    # until all have been up, a pod that is not there was not made yet; later it was taken away
    lost = bool(missing) and not stale and job.status.get("phase") == c.PHASE_RUNNING
    if fallen or lost:
        erred = any(has_failed(p) and not p.disrupted and not p.deleting for p in fallen)
        counts = {**retries, KEY: retries.get(KEY, 0) + 1} if erred else dict(retries)
        return ReplicaActions((), (), counts, fallen, 0.0, begins=attempt + 1)

    waits = [restart.remaining_delay(p, now) for p in stale if _keeps_time(p)]
    wait = max(waits, default=0.0)
    going = tuple(delete(p) for p in stale if not p.deleting and not (wait > 0 and _keeps_time(p)))
    return ReplicaActions(tuple(missing) if not stale else (), going, dict(retries), (), wait or None)


def _keeps_time(pod: PodState) -> bool:
    return has_failed(pod) and not pod.disrupted and not pod.deleting
