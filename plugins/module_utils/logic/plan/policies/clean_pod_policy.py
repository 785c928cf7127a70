"""Cleanup of a finished job: which of its pods, Services and other owned objects to delete, and when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import (
    batch_job,
    owned_objects,
    shared_env_configmap,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.owned_objects import Key
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import adoption
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import suspension
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import completed as completed_
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import outcome
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    CLEAN_ALL,
    CLEAN_NONE,
    CLEAN_RUNNING,
    CONDITION_RESTARTING,
    CONDITION_RUNNING,
    LIFETIME_PODS,
    REASON_INVALID,
    REASON_REFUSED,
    RESTART_ALWAYS,
    STATE_FAILED,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, OwnedObject, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion

GRACE_PERIOD = 10.0
"""Seconds that the replicas of a succeeded job have to exit by themselves.

On a loaded node the kubelet reported the exit of a process more than 5 s later than that of one that ended 1 s earlier.
"""


def cleanup_targets(job: DLJob, observed: Observed, kept: Collection[Key] = ()) -> tuple[Deletion, ...]:
    """The objects that ``cleanPodPolicy`` deletes of a finished job. Running keeps terminated pods for their logs.

    None keeps all pods but those of :func:`never_started`, and a batch Job that has not ended: it would go on and
    replace its pod in a job that has failed.
    The objects in ``kept``, by kind and name, outlive the training.
    """
    pods = tuple(batch_job.deletion(p) for p in _pods(job, observed.pods))
    if _policy(job) == CLEAN_NONE:
        return pods
    # no running pod needs these any more
    others = tuple(
        owned_objects.deletion(key, found)
        for key, found in observed.owned_objects.items()
        if key not in kept and _serves_pods(key, found) and not keeps(job, key[0])
    )
    return pods + others + shared_env_configmap.deletions(observed)


def foreign_targets(job: DLJob, observed: Observed) -> tuple[Deletion, ...]:
    """The pods that ``cleanPodPolicy`` deletes of those of a finished job that were never adopted."""
    return tuple(adoption.deletion(p) for p in _pods(job, observed.foreign))


def _pods(job: DLJob, pods: Iterable[PodState]) -> list[PodState]:
    """Those of ``pods`` that ``cleanPodPolicy`` deletes of a finished job."""
    policy = _policy(job)
    candidates = [p for p in pods if not p.deleting]
    if policy == CLEAN_NONE:
        has_failed = bool(job.status.get("failure"))
        candidates = [p for p in candidates if never_started(p) or (p.batch_job and has_failed)]
    if policy != CLEAN_ALL and candidates:
        ends = _RecordedEnds(job)
        candidates = [p for p in candidates if p.is_active and not ends.ends_soon(p)]
    return candidates


def never_started(pod: PodState) -> bool:
    """Whether the program of the pod, or of the batch Job, is still to start. It would begin in a job that is over.

    Nothing is lost with it: there is no log but that of init containers.
    """
    return pod.phase == "Pending" and pod.is_active and not pod.has_run


def presumed_unstarted(job: DLJob, observed: Observed) -> tuple[str, ...]:
    """The uids of the pods that :func:`cleanup_targets` deletes only because they have :func:`never_started`.

    A cache may be behind, and show a pod that runs meanwhile, which None keeps.
    """
    if _policy(job) != CLEAN_NONE:
        return ()
    return tuple(p.uid for p in _pods(job, observed.pods) if never_started(p) and p.batch_job is None)


def running_again(job: DLJob, observed: Observed) -> tuple[str, ...]:
    """The uids of the pods that :func:`cleanup_targets` deletes, although the status has recorded the end of their
    replicas.

    Such a pod has been created where the operator did not know of that end yet, as by a plan from a stale cache. Or the
    cache is behind the status and shows a pod that has ended, which Running keeps for its log.
    """
    if _policy(job) != CLEAN_RUNNING:
        return ()
    ends = _RecordedEnds(job)
    return tuple(p.uid for p in observed.pods if not p.deleting and p.is_active and ends.has(p))


class _RecordedEnds:
    """The ends of replicas that the status has recorded, compared with pods that do not show them."""

    def __init__(self, job: DLJob) -> None:
        failure = as_mapping(job.status.get("failure"))
        self._culprit = str(failure.get("pod") or "")
        self._failed = self._culprit if failure.get("exitCode") is not None else None
        self._completed = completed_.read(job.status.get("completed"))  # once: it grows with the replicas

    def has(self, pod: PodState) -> bool:
        """Whether the end of the pod's replica is recorded, and the pod, which no batch Job runs, does not show one."""
        if pod.batch_job is not None or pod.ended is not None:
            return False
        return pod.name == self._failed or pod.index in self._completed.get(pod.type, ())

    def ends_soon(self, pod: PodState) -> bool:
        """Whether the end of the replica is recorded, and the batch Job that runs it does not show one yet.

        Running keeps the Job, and with it the pod's log. The Job's next change triggers a reconcile.
        """
        if pod.batch_job is None or (pod.ended is not None and pod.ended.code == 0):
            return False
        # a pod that failed may be seen before the end of its Job; its name is the Job's with a suffix
        is_culprit = self._culprit == pod.batch_job.name or self._culprit.startswith(f"{pod.batch_job.name}-")
        return is_culprit or pod.index in self._completed.get(pod.type, ())


def _policy(job: DLJob) -> str:
    """The cleanPodPolicy that applies."""
    return CLEAN_ALL if leaves_nothing(job) else job.run_policy.clean_pod_policy


def keeps(job: DLJob, kind: str) -> bool:
    """Whether the objects of ``kind`` that serve the pods stay: with all pods, or where the flavor keeps them."""
    policy = _policy(job)
    return policy == CLEAN_NONE or (policy == CLEAN_RUNNING and kind in job.flavor.running_keeps)


def is_refused(job: DLJob) -> bool:
    """Whether the job has failed because it was invalid, or Kubernetes refused one of its objects."""
    return as_mapping(job.status.get("failure")).get("reason") in (REASON_INVALID, REASON_REFUSED)


def leaves_nothing(job: DLJob) -> bool:
    """Whether a part of the job was refused before it ran as a whole: its first pods would wait for the others
    and hold their resources, and what outlives a training has nothing to show.
    """
    found = conditions.read_conditions(job.status)
    # Restarting takes the place of Running
    never_ran = all(conditions.get_condition(found, x) is None for x in (CONDITION_RUNNING, CONDITION_RESTARTING))
    return is_refused(job) and never_ran


def was_invalid_at_rest(status: Mapping[str, Any]) -> bool:
    """Whether the job was invalid from its beginning, or since it was suspended: then no pod of it is to be kept.

    Of one that ran, that Kubernetes refused a pod, and that an edit then made invalid, cleanPodPolicy has decided.
    """
    is_invalid = as_mapping(status.get("failure")).get("reason") == REASON_INVALID
    has_begun = bool(status.get("startTime")) and not suspension.is_recorded(status)
    return is_invalid and outcome(status) == STATE_FAILED and not has_begun


def _serves_pods(key: Key, found: OwnedObject) -> bool:
    """Whether the object is of use only as long as the pods: their Services, and what a hook returned for them."""
    if found.lifetime:
        return found.lifetime == LIFETIME_PODS
    return key[0] == "Service"


def is_clean(job: DLJob, observed: Observed, kept: Collection[Key] = ()) -> bool:
    """Whether there is nothing left to delete, and no pod is terminating."""
    if _policy(job) == CLEAN_NONE:
        return not cleanup_targets(job, observed, kept)
    waiting = any(p.deleting for p in observed.pods)
    return not waiting and not cleanup_targets(job, observed, kept)


def grace_period(
    job: DLJob, framework: Framework, observed: Observed, succeeded_at: str | None, now: datetime
) -> float | None:
    """Seconds by which to delay the cleanup of a succeeded job, ``None`` where no pod is about to end.

    The success target is often the first to exit: ps-lite's scheduler exits together with the workers, and the kubelet
    reports one of them before the others. Deleting a worker then would delete the log that Running keeps. Until they
    have exited, workers need their servers and the DNS names of all replicas.

    None waits for pods that have a node: one that has started, and even ended, may be reported as Pending still. All
    waits for sidecars only, see :func:`sidecar_period`.
    """
    left, policy = left_of_grace_period(succeeded_at, now), job.run_policy.clean_pod_policy
    if left is None:
        return None
    active = [pod for pod in observed.pods if pod.is_active and not pod.deleting]
    if policy == CLEAN_NONE:
        return left if any(pod.node and never_started(pod) for pod in active) else None
    waits = any(_awaits_sidecar(pod) or (policy == CLEAN_RUNNING and _exits(pod, framework)) for pod in active)
    return left if waits else None


def sidecar_period(observed: Observed, succeeded_at: str | None, now: datetime) -> float | None:
    """Seconds by which to delay even the deletion of a succeeded job, ``None`` where no sidecar is at work.

    It may have work left when the program has exited: Katib's sends the metrics of a trial, which waits for them
    forever, or runs again where its job is gone.
    """
    left = left_of_grace_period(succeeded_at, now)
    waits = any(pod.is_active and not pod.deleting and _awaits_sidecar(pod) for pod in observed.pods)
    return left if waits else None


def left_of_grace_period(succeeded_at: str | None, now: datetime) -> float | None:
    """Seconds until the :data:`GRACE_PERIOD` has passed since ``succeeded_at`` (RFC 3339), ``None`` from then on."""
    ago = clock.seconds_since(succeeded_at, now)
    # abs(): the clock of this process may be behind the one that set the time
    return None if ago is None or abs(ago) >= GRACE_PERIOD else GRACE_PERIOD - ago


def _exits(pod: PodState, framework: Framework) -> bool:
    """Whether the program runs, and exits by itself once the job has succeeded."""
    return pod.phase == "Running" and ends_by_itself(pod, framework)


def ends_by_itself(pod: PodState, framework: Framework) -> bool:
    """Whether the program of ``pod`` exits at the end of the training, and nothing starts it again."""
    type_ = framework.type_named(pod.type)
    return type_ is not None and not type_.long_running and pod.restart_policy != RESTART_ALWAYS


def _awaits_sidecar(pod: PodState) -> bool:
    """Whether the program of a pod that is active has exited with 0, so that another container runs on."""
    return pod.terminated and pod.ended is not None and pod.ended.code == 0
