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

from ansible_collections.dljob.operator.plugins.module_utils.logic.policies import restart
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.failure import has_failed
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.replicas import Moves, Start, delete
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodView

KEY = "job"
"""Under which the status counts these restarts among its ``retries``."""


def applies_to(job: DLJob) -> bool:
    return job.run_policy.restart_scope == c.RESTART_SCOPE_JOB


def attempt_of(retries: Mapping[str, int]) -> int:
    """The attempt that the job is at; 0 is the first."""
    return retries.get(KEY, 0)


def of_this_attempt(observed: Observed, retries: Mapping[str, int]) -> Observed:
    """``observed`` without pods of an attempt given up: what became of them tells nothing of this one."""
    attempt = attempt_of(retries)
    return dataclasses.replace(observed, pods=tuple(p for p in observed.pods if p.attempt == attempt))


def next_moves(
    job: DLJob,
    observed: Observed,
    hashes: Mapping[str, str],
    retries: Mapping[str, int],
    completed: Mapping[str, set[int]],
    now: datetime,
) -> Moves:
    """As :func:`.replicas.next_moves`, for the job as one.

    A restart is counted first. The pass that finds it counted deletes the pods of the attempt before; those that failed
    are kept until the delay since their end is over, for they are what tells the time.
    """
    attempt = attempt_of(retries)
    sizes = {group.type.lower(): group.replicas for group in job.groups}
    wanted = {type_.lower(): value for type_, value in hashes.items()}
    mine: dict[tuple[str, int], PodView] = {}
    stale: list[PodView] = []
    for pod in observed.pods:
        current = (
            pod.attempt == attempt and pod.spec_hash == wanted.get(pod.type) and pod.index < sizes.get(pod.type, 0)
        )
        if current:
            mine[pod.type, pod.index] = pod
        else:
            stale.append(pod)

    missing = [
        Start(group, index, attempt)
        for group, index in job.tasks()
        if (group.type.lower(), index) not in mine and index not in completed.get(group.type.lower(), ())
    ]
    fallen = tuple(p for p in mine.values() if has_failed(p) or p.deleting)
    # until all have been up, a pod that is not there was not made yet; later it was taken away
    lost = bool(missing) and not stale and job.status.get("phase") == c.PHASE_RUNNING
    if fallen or lost:
        return Moves((), (), {KEY: attempt + 1}, fallen, 0.0, all_anew=True)

    waits = [restart.remaining_delay(p, now) for p in stale if has_failed(p) and not p.deleting]
    wait = max(waits, default=0.0)
    going = tuple(delete(p) for p in stale if not p.deleting and not (wait > 0 and has_failed(p)))
    return Moves(tuple(missing) if not stale else (), going, dict(retries), (), wait or None)
