"""Which pods to create and to delete so that every replica has exactly one pod."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.batch_job import deletion as delete
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import SpecHashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_failed
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import backoff
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import action_for, is_fatal
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.pod_failure_policy import COUNTED
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import key
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, PodToCreate
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    ACTION_FAIL_JOB,
    ACTION_IGNORE,
)


@dataclass(frozen=True, slots=True)
class Progress:
    """What the status records of the job beyond its pods."""

    hashes: SpecHashes
    """The current spec hashes."""
    retries: Mapping[str, int]
    """Failures counted so far, by :func:`key`."""
    completed: Mapping[str, set[int]]
    """Indexes of the replicas that have succeeded, by lower-case type. They need no pod."""
    attempt: int = 0
    """The current attempt where all replicas restart together."""
    is_new_spec: bool = False
    """Whether the status is of another spec, so that its phase says nothing of the pods that are missing."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Failures that a rule of podFailurePolicy excluded from ``retries``, by :func:`key`."""
    consequences: Collection[str] = ()
    """The uids of the pods whose failure is a consequence of the loss of another replica: it decides nothing."""
    undecided: Collection[str] = ()
    """The uids of the pods about whose failure the next reconcile decides."""


@dataclass(frozen=True, slots=True)
class ReplicaActions:
    """The next steps. ``retries`` and ``ignored`` are the complete new counts. ``restarted`` has the failed pods that
    they newly count, and the disrupted pods, which they do not count."""

    starts: tuple[PodToCreate, ...]
    deletions: tuple[Deletion, ...]
    retries: Mapping[str, int]
    restarted: tuple[PodState, ...]
    wait: float | None
    begins: int = 0
    """The new attempt where all replicas restart together and their completion is reset; 0 where they do not."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    awaited: tuple[PodState, ...] = ()
    """The terminating pods that keep replicas from getting new ones."""


def is_current(pod: PodState, progress: Progress) -> bool:
    return pod.spec_hash == progress.hashes.of(pod.type, pod.index)


def of_another_template(job: DLJob, observed: Observed, progress: Progress) -> list[PodState]:
    """The pods of resizable types of another template, also those that terminate.

    The processes that the other types have started there end with them, so that these begin anew: their own hashes do
    not cover that template. Pods that come and go with the number of replicas do not matter.
    """
    return [
        pod
        for group in job.groups
        if group.resizable
        for pod in observed.pods_of(group.type)
        if pod.index < group.replicas and not is_current(pod, progress)
    ]


def next_actions(job: DLJob, observed: Observed, progress: Progress, now: datetime) -> ReplicaActions:
    """Compare the job with its pods, without those in which a replica has succeeded: they stay as they are.

    A replica gets no new pod while its old one exists, even if that is terminating: two pods of one rank would have the
    same DNS name. One reconcile counts a failed pod in the status and a later one deletes it, so that the count is
    correct whatever fails in between. The attempt of a pod is the number of failures before it, whether counted for the
    limits or ignored.
    """
    starts: list[PodToCreate] = []
    deletions: list[Deletion] = []
    counts, ignored = dict(progress.retries), dict(progress.ignored)
    restarted: list[PodState] = []
    waits: list[float] = []
    awaited: list[PodState] = []
    by_replica: dict[str, list[PodState]] = {}
    for pod in observed.pods:
        by_replica.setdefault(key(pod.type, pod.index), []).append(pod)

    old = of_another_template(job, observed, progress)
    # one that terminates was asked to before a pod that is there now began: that one does not use it
    is_anew = any(not pod.deleting for pod in old)
    # the others go first: a request may fail, and their processes must not outlive those that they have started
    goes_first = is_anew and any(
        not pod.deleting for group in job.groups if not group.resizable for pod in observed.pods_of(group.type)
    )
    for group, index in job.tasks():
        name = key(group.type, index)
        pods = by_replica.pop(name, [])
        if not pods:
            is_held_back = bool(old) and not group.resizable
            if index not in progress.completed.get(group.type.lower(), ()) and not is_held_back:
                starts.append(PodToCreate(group, index, counts.get(name, 0) + ignored.get(name, 0)))
            continue
        current, *others = sorted(pods, key=lambda p: (not p.deleting, p.attempt), reverse=True)
        deletions.extend(delete(p) for p in others if not p.deleting)
        is_kept = is_current(current, progress) and (group.resizable or not is_anew)
        action = action_for(job, current) if is_kept else ""
        failures = counts.get(name, 0) + ignored.get(name, 0)
        is_caused = current.uid in progress.consequences
        if current.uid in progress.undecided:
            continue
        if current.deleting:
            if action in COUNTED and failures <= current.attempt:
                counts[name] = counts.get(name, 0) + current.attempt + 1 - failures
                restarted.append(current)
            if index not in progress.completed.get(group.type.lower(), ()):
                awaited.append(current)
            continue
        if not is_kept:
            if not (goes_first and group.resizable):
                deletions.append(delete(current))
        elif group.type == job.elastic_type and not is_caused and is_fatal(job, group, current):
            continue  # it failed permanently; keep it for its log
        elif action == ACTION_FAIL_JOB and not is_caused:
            continue  # the job fails, and has no attempt to count
        elif has_failed(current) and current.disrupted and action not in COUNTED:
            # the cluster ended it: no delay, and backoffLimit does not count it
            restarted.append(current)
            deletions.append(delete(current))
        elif has_failed(current):
            wait = backoff.remaining_delay(current, now)
            if failures <= current.attempt:
                # based on the pod's attempt, so that counting again from a stale cache gives the same number
                counter = ignored if action == ACTION_IGNORE else counts
                counter[name] = counter.get(name, 0) + current.attempt + 1 - failures
                restarted.append(current)
                waits.append(wait)
            elif wait > 0:
                waits.append(wait)
            else:
                deletions.append(delete(current))
    # pods of replicas that the job no longer has
    resizable = {group.type.lower() for group in job.groups if group.resizable}
    surplus = (pod for pods in by_replica.values() for pod in pods if not pod.deleting)
    deletions.extend(delete(pod) for pod in surplus if not (goes_first and pod.type in resizable))
    wait_for = min(waits, default=None)
    return ReplicaActions(
        tuple(starts), tuple(deletions), counts, tuple(restarted), wait_for, ignored=ignored, awaited=tuple(awaited)
    )
