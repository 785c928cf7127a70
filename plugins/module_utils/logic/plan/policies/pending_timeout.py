"""``runPolicy.pendingTimeoutSeconds``: a job whose pods do not start ends, instead of holding what its others hold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import is_done
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import may_be_culprit
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState


def find_timeout(job: DLJob, observed: Observed, now: datetime) -> Failure | None:
    """The failure of a job one of whose pods has been pending for longer than the field allows.

    The job fails with it, whatever the restart policy: a new pod of the same template waits for the same reason.
    """
    late = [pod for pod, left in _pending(job, observed, now) if left <= 0]
    if not late:
        return None
    pod = min(late, key=lambda one: one.name)
    more = f" and {len(late) - 1} more" if len(late) > 1 else ""
    verb = "are" if more else "is"
    return Failure(
        c.REASON_PENDING,
        f"pod {pod.display_name}{more} {verb} pending for longer than spec.runPolicy.pendingTimeoutSeconds, "
        f"{job.run_policy.pending_timeout_seconds} s: {_cause(pod)}",
        pod.name if may_be_culprit(pod) else "",
    )


def next_check(job: DLJob, observed: Observed, now: datetime) -> float | None:
    """Seconds until the first pod exceeds the time, ``None`` where none is pending or the job sets no limit."""
    return min((left for _, left in _pending(job, observed, now) if left > 0), default=None)


def _pending(job: DLJob, observed: Observed, now: datetime) -> Iterator[tuple[PodState, float]]:
    """The pods that wait for their start, each with the seconds that it may still wait."""
    limit = job.run_policy.pending_timeout_seconds
    if limit is None:
        return
    dispensable = _dispensable_type(job, observed)
    for pod in observed.pods:
        if not pod.pending_since or pod.deleting or pod.type == dispensable:
            continue
        waited = clock.seconds_since(pod.pending_since, now)
        if waited is None or waited < 0:  # the clock of its node is wrong
            waited = clock.seconds_since(pod.created, now)
        if waited is not None:
            yield pod, limit - waited


def _dispensable_type(job: DLJob, observed: Observed) -> str | None:
    """The elastic type, in lower case, once one of its replicas runs or has succeeded: the job then needs no other."""
    pods = observed.pods_of(job.elastic_type)
    is_up = any(p.phase == "Running" or is_done(p) for p in pods if not p.deleting)
    return job.elastic_type.lower() if is_up else None


def _cause(pod: PodState) -> str:
    if pod.waiting:
        return pod.waiting
    return f"its containers do not start on node {pod.node}" if pod.node else "no scheduler has assigned it to a node"
