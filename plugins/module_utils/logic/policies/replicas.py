"""Which pods to create and which to delete so that every replica has its one pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.policies import restart
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.failure import has_failed, is_fatal
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Deletion, Observed, PodState


@dataclass(frozen=True, slots=True)
class PodToCreate:
    """A pod to create."""

    group: ReplicaGroup
    index: int
    attempt: int


@dataclass(frozen=True, slots=True)
class ReplicaActions:
    """The next steps. ``retries`` is the whole new count, ``restarted`` the failed pods that it newly counts, and those
    that were disrupted, which it does not."""

    starts: tuple[PodToCreate, ...]
    deletions: tuple[Deletion, ...]
    retries: Mapping[str, int]
    restarted: tuple[PodState, ...]
    wait: float | None
    begins: int = 0
    """The attempt as which the whole job begins again, what its replicas had done counting no more; 0: it does not."""


def key(type_: str, index: int) -> str:
    """How the status names a replica: ``worker-0``."""
    return f"{type_.lower()}-{index}"


def next_actions(
    job: DLJob,
    observed: Observed,
    hashes: Mapping[str, str],
    retries: Mapping[str, int],
    completed: Mapping[str, set[int]],
    now: datetime,
) -> ReplicaActions:
    """Compare the job with its pods.

    A replica whose old pod is still there, even if only terminating, gets no new one: two pods of one rank would both
    answer to its name. A failed pod is counted first, and deleted by a later pass that finds it counted: whatever goes
    wrong between the two, the count stands. ``hashes`` holds the current spec hash by type.
    """
    starts: list[PodToCreate] = []
    deletions: list[Deletion] = []
    counts = dict(retries)
    restarted: list[PodState] = []
    waits: list[float] = []
    by_replica: dict[str, list[PodState]] = {}
    for pod in observed.pods:
        by_replica.setdefault(key(pod.type, pod.index), []).append(pod)

    for group, index in job.tasks():
        name = key(group.type, index)
        pods = by_replica.pop(name, [])
        if not pods:
            if index not in completed.get(group.type.lower(), ()):
                starts.append(PodToCreate(group, index, counts.get(name, 0)))
            continue
        current, *others = sorted(pods, key=lambda p: (not p.deleting, p.attempt), reverse=True)
        deletions.extend(delete(p) for p in others if not p.deleting)
        if current.deleting:
            continue
        if current.spec_hash != hashes[group.type]:
            deletions.append(delete(current))
        elif group.type == job.elastic_type and is_fatal(job, group, current):
            continue  # it failed for good, and its log may be wanted
        elif has_failed(current) and current.disrupted:
            # the cluster took it away: nothing to wait for, and nothing that a budget of errors should count
            restarted.append(current)
            deletions.append(delete(current))
        elif has_failed(current):
            wait = restart.remaining_delay(current, now)
            if counts.get(name, 0) <= current.attempt:
                # from the pod's own attempt: counting again on a stale view comes to the same number
                counts[name] = current.attempt + 1
                restarted.append(current)
                waits.append(wait)
            elif wait > 0:
                waits.append(wait)
            else:
                deletions.append(delete(current))
    # replicas that the job no longer has
    deletions.extend(delete(p) for pods in by_replica.values() for p in pods if not p.deleting)
    return ReplicaActions(tuple(starts), tuple(deletions), counts, tuple(restarted), min(waits, default=None))


def delete(pod: PodState) -> Deletion:
    """Of that very pod, not of one that has taken its name."""
    return Deletion("Pod", pod.name, pod.uid)
