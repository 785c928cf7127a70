"""The action RestartJob of podFailurePolicy: the failure restarts all replicas of a job that otherwise restarts single
ones (``restartScope: Replica``).

The attempts of such a job are in the spec hash of its pods, because their label has the attempts of the replica. As
under ``restartScope: Job``, no pod is created before the last pod of the previous attempt is gone.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import SpecHashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import replicas
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import action_for
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import (
    Progress,
    ReplicaActions,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.restart_scope import KEY, deletions_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import digits
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import ACTION_RESTART_JOB


def attempt_of(pod: PodState, hashes: SpecHashes) -> int | None:
    """The attempt of a pod of the spec with these ``hashes``, ``None`` for a pod of another spec."""
    spec, _, attempt = pod.spec_hash.partition("-")
    if spec != hashes.of_attempt(0).of(pod.type, pod.index):
        return None
    return digits.number(attempt) if attempt else 0


def current_attempt(observed: Observed, hashes: SpecHashes, recorded: int) -> int:
    """The attempt of the newest pods, or the ``recorded`` one if that is newer, as in :mod:`.restart_scope`."""
    # most jobs never restart, and may have thousands of pods
    found = (attempt_of(pod, hashes) for pod in observed.pods if "-" in pod.spec_hash and not pod.deleting)
    return max([recorded, *(attempt for attempt in found if attempt is not None)])


def next_actions(job: DLJob, observed: Observed, progress: Progress, now: datetime) -> ReplicaActions:
    """Like :func:`.replicas.next_actions`, unless a rule restarts the job or it is restarting.

    ``progress.hashes`` are those of the current attempt.
    """
    sizes = {group.type.lower(): group.replicas for group in job.groups}
    causes = tuple(
        pod
        for pod in observed.pods
        if job.run_policy.failure_rules
        and pod.spec_hash == progress.hashes.of(pod.type, pod.index)
        and pod.index < sizes[pod.type]
        and action_for(job, pod) == ACTION_RESTART_JOB
    )
    if causes:
        return all_replicas(progress, causes)
    actions = replicas.next_actions(job, observed, progress, now)
    if not progress.attempt:
        return actions
    attempts = {pod.uid: attempt_of(pod, progress.hashes) for pod in observed.pods}
    previous = [
        # the delay grows with the attempts of the job too
        dataclasses.replace(pod, attempt=max(pod.attempt, attempt))
        for pod in observed.pods
        if (attempt := attempts[pod.uid]) is not None and attempt < progress.attempt
    ]
    if not previous:
        return actions
    deletions, wait = deletions_of(previous, now)
    uids = {pod.uid for pod in previous}
    others = tuple(one for one in actions.deletions if one.uid not in uids)
    waits = [one for one in (actions.wait, wait or None) if one is not None]
    return dataclasses.replace(actions, starts=(), deletions=(*others, *deletions), wait=min(waits, default=None))


def all_replicas(progress: Progress, causes: tuple[PodState, ...]) -> ReplicaActions:
    """All replicas restart, after the failures of ``causes``, which count for the job."""
    counts = {**progress.retries, KEY: progress.retries.get(KEY, 0) + 1}
    return ReplicaActions((), (), counts, causes, 0.0, begins=progress.attempt + 1, ignored=progress.ignored)
