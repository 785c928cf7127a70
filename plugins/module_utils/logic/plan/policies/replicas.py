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
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup
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
    found = _Collected(job, progress, now, is_anew, goes_first)
    for group, index in job.tasks():
        name = key(group.type, index)
        pods = by_replica.pop(name, None)
        if pods:
            found.with_pods(group, name, pods)
        elif (group.resizable or not old) and not found.is_completed(group, index):
            found.starts.append(PodToCreate(group, index, found.failures(name)))
    # pods of replicas that the job no longer has
    resizable = {group.type.lower() for group in job.groups if group.resizable}
    surplus = (pod for pods in by_replica.values() for pod in pods if not pod.deleting)
    found.deletions.extend(delete(pod) for pod in surplus if not (goes_first and pod.type in resizable))
    return found.actions()


class _Collected:
    """What the replicas need that have been looked at."""

    def __init__(self, job: DLJob, progress: Progress, now: datetime, is_anew: bool, goes_first: bool) -> None:
        self._job = job
        self._progress = progress
        self._now = now
        self._is_anew = is_anew
        self._goes_first = goes_first
        self._counts, self._ignored = dict(progress.retries), dict(progress.ignored)
        self.starts: list[PodToCreate] = []
        self._restarted: list[PodState] = []
        self._waits: list[float] = []
        self._awaited: list[PodState] = []
        self.deletions: list[Deletion] = []

    def actions(self) -> ReplicaActions:
        return ReplicaActions(
            tuple(self.starts),
            tuple(self.deletions),
            self._counts,
            tuple(self._restarted),
            min(self._waits, default=None),
            ignored=self._ignored,
            awaited=tuple(self._awaited),
        )

    def with_pods(self, group: ReplicaGroup, name: str, pods: list[PodState]) -> None:
        """Keep, count or delete the newest of the ``pods`` of a replica, and delete the others."""
        current = pods[0]
        if len(pods) > 1:
            current, *others = sorted(pods, key=lambda p: (not p.deleting, p.attempt), reverse=True)
            self.deletions.extend(delete(p) for p in others if not p.deleting)
        is_kept = is_current(current, self._progress) and (group.resizable or not self._is_anew)
        action = action_for(self._job, current) if is_kept else ""
        if current.uid in self._progress.undecided:
            return
        if current.deleting:
            self._terminates(group, name, current, action)
        elif not is_kept:
            if not (self._goes_first and group.resizable):
                self.deletions.append(delete(current))
        elif has_failed(current) and not self._is_final(group, current, action):
            self._failed(name, current, action)

    def _terminates(self, group: ReplicaGroup, name: str, pod: PodState, action: str) -> None:
        failures = self.failures(name)
        if action in COUNTED and failures <= pod.attempt:
            self._count(self._counts, name, pod, failures)
        if not self.is_completed(group, pod.index):
            self._awaited.append(pod)

    def _is_final(self, group: ReplicaGroup, pod: PodState, action: str) -> bool:
        """Whether the failure is permanent, so that the pod is kept for its log, or the job fails and has no attempt to
        count."""
        if pod.uid in self._progress.consequences:
            return False
        return action == ACTION_FAIL_JOB or (group.type == self._job.elastic_type and is_fatal(self._job, group, pod))

    def _failed(self, name: str, pod: PodState, action: str) -> None:
        if pod.disrupted and action not in COUNTED:
            # the cluster ended it: no delay, and backoffLimit does not count it
            self._restarted.append(pod)
            self.deletions.append(delete(pod))
            return
        wait, failures = backoff.remaining_delay(pod, self._now), self.failures(name)
        if failures <= pod.attempt:
            self._count(self._ignored if action == ACTION_IGNORE else self._counts, name, pod, failures)
            self._waits.append(wait)
        elif wait > 0:
            self._waits.append(wait)
        else:
            self.deletions.append(delete(pod))

    def _count(self, counter: dict[str, int], name: str, pod: PodState, failures: int) -> None:
        # based on the pod's attempt, so that counting again from a stale cache gives the same number
        counter[name] = counter.get(name, 0) + pod.attempt + 1 - failures
        self._restarted.append(pod)

    def failures(self, name: str) -> int:
        return self._counts.get(name, 0) + self._ignored.get(name, 0)

    def is_completed(self, group: ReplicaGroup, index: int) -> bool:
        return index in self._progress.completed.get(group.type.lower(), ())
