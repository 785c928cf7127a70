"""Which pods have failed, and whether that is the job's failure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.dljob.operator.plugins.module_utils.logic.log_tail import IN_SENTENCE, log_tail
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.exit_codes import (
    ExitCodeClass,
    classify_exit_code,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.success import has_succeeded
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FAILS_BY_TARGET
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job failed: what its user asks first."""

    reason: str
    message: str
    pod: str = ""
    container: str = ""
    exit_code: int | None = None
    words: str = ""
    """What the container, or who ended the pod, said last; its end is in the message too."""


def has_failed(pod: PodState) -> bool:
    """Whether this pod will not run again: the kubelet has given it up, or its main container under policy Never.

    Not where the framework's container had succeeded: a sidecar's failure does not undo its work.
    """
    if pod.phase == "Failed":
        return not has_succeeded(pod)
    return pod.terminated and pod.restart_policy == c.RESTART_NEVER and pod.ended is not None and pod.ended.code != 0


def find_failure(job: DLJob, observed: Observed, completed: Mapping[str, set[int]] | None = None) -> Failure | None:
    """The failure that ends ``job``, or ``None`` while it can still succeed.

    A replica of the dynamic type fails for itself, and the job with the last of them: once all have ended and the job
    has not succeeded (``completed`` are those that have), unless another type decides.
    """
    for group in job.groups:
        if group.type == job.elastic_type:
            continue
        for pod in observed.pods_of(group.type):
            if not pod.deleting and is_fatal(job, group, pod):
                return describe(pod)
    lost = lost_pods(job, observed)
    if not lost or job.success_target.type != job.elastic_type:
        return None
    ended = {p.index for p in lost} | (completed or {}).get(job.elastic_type.lower(), set())
    dynamic = job.group(job.elastic_type)
    return describe(lost[0]) if dynamic and ended.issuperset(range(dynamic.replicas)) else None


def lost_pods(job: DLJob, observed: Observed) -> list[PodState]:
    """Of the dynamic type, the pods that have failed for good: nobody starts them again, and the others go on."""
    group = job.group(job.elastic_type)
    if group is None:
        return []
    return [p for p in observed.pods_of(group.type) if not p.deleting and is_fatal(job, group, p)]


def is_fatal(job: DLJob, group: ReplicaGroup, pod: PodState) -> bool:
    """Whether ``pod`` has failed in a way that, by the restart policy of its ``group``, no restart follows."""
    if job.flavor.fails_by == FAILS_BY_TARGET:
        # the replicas of a local job know nothing of one another: each one's result counts
        chief = group.type == job.success_target.type and (
            pod.index == job.success_target.index or job.mode == c.MODE_LOCAL
        )
        if not chief:
            return False
        # the container's last end counts even where the kubelet, by the template's OnFailure, has restarted it since
        if pod.ended is not None and pod.ended.code != 0 and not pod.disrupted:
            return classify_exit_code(pod.ended, job.flavor.exit_codes) is ExitCodeClass.PERMANENT
        return False
    if not has_failed(pod):
        return False
    if group.restart_policy == c.RESTART_EXIT_CODE:
        if pod.disrupted or pod.ended is None:
            return False
        return classify_exit_code(pod.ended, job.flavor.exit_codes) is ExitCodeClass.PERMANENT
    return group.restart_policy == c.RESTART_NEVER


def describe(pod: PodState) -> Failure:
    """The failure of ``pod`` in one sentence: pod, container, exit code, reason and the program's last words.

    What the kubelet or a controller says of the pod as a whole (Evicted, DeadlineExceeded) comes before the reason of
    the container that was ended by it, which is only Error.
    """
    if pod.ended is None or pod.ended.code == 0:
        reason = pod.reason or "Error"
        return _told(Failure(reason, f"pod {pod.name} failed: {reason}", pod.name, words=pod.message))
    reason = pod.ended.reason if pod.ended.reason == c.REASON_OOM else pod.reason or pod.ended.reason or "Error"
    said = [pod.message, pod.ended.message] if reason == pod.reason else [pod.ended.message or pod.message]
    return _told(
        Failure(
            reason,
            f"container {pod.container} of pod {pod.name} exited with {pod.ended.code} ({reason})",
            pod.name,
            pod.container,
            pod.ended.code,
            "\n".join(filter(None, said)),
        )
    )


def _told(failure: Failure) -> Failure:
    words = log_tail(failure.words, IN_SENTENCE)
    return dataclasses.replace(failure, message=f"{failure.message}: {words}") if words else failure


def retries_of(job: DLJob) -> dict[str, int]:
    """Replacement pods made so far, by ``<type>-<index>``: kept in the status, so that the count outlives the pods."""
    held = job.status.get("retries")
    return {str(k): v for k, v in held.items() if isinstance(v, int)} if isinstance(held, Mapping) else {}


def over_backoff_limit(job: DLJob, retries: Mapping[str, int], pods: Sequence[PodState]) -> Failure | None:
    """The failure of a job that was restarted more often than ``backoffLimit`` allows, in place or by a new pod."""
    limit = job.run_policy.backoff_limit
    if limit is None:
        return None
    spent = sum(retries.values()) + sum(p.restarts for p in pods)
    if spent <= limit:
        return None
    message = (
        f"the job's replicas ended {spent} times with an error, spec.runPolicy.backoffLimit allows {limit} restarts"
    )
    last = max(
        (p for p in pods if p.ended and p.ended.code),
        key=lambda p: p.ended.finished_at if p.ended else "",
        default=None,
    )
    if last is None:
        return Failure(c.REASON_BACKOFF, message)
    told = describe(last)
    return dataclasses.replace(told, reason=c.REASON_BACKOFF, message=f"{message}; last: {told.message}")
