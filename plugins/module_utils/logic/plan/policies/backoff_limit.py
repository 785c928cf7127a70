"""``runPolicy.backoffLimit``: how often the replicas of a job may restart, all together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import describe, may_be_culprit
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import NONE, Losses
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState


def exceeded(
    job: DLJob, retries: Mapping[str, int], pods: Sequence[PodState], losses: Losses = NONE, stall: str = ""
) -> Failure | None:
    """The failure of a job with more restarts than the field allows, in place or by a new pod.

    Restarts that are consequences of the loss of another replica do not count. ``stall`` says that the job stalls and
    would restart because of it.
    """
    limit = job.run_policy.backoff_limit
    if limit is None:
        return None
    restarts = sum(retries.values()) + sum(p.restarts for p in pods)
    if restarts > limit and losses.counts:
        restarts -= sum(losses.forgiven(retries, pods).values())
    if restarts <= limit:
        return None
    if stall:
        allowed = f"spec.runPolicy.backoffLimit allows {limit} restarts"
        return Failure(c.REASON_BACKOFF, f"{stall}, and {allowed}, of which none is left")
    message = (
        f"the job's replicas ended {restarts} times with an error, spec.runPolicy.backoffLimit allows {limit} restarts"
    )
    # the exit of a pod that somebody deleted or the cluster ended is not one of the counted errors
    last = max(
        (p for p in pods if _is_counted(p) and p.uid not in losses.uids),
        key=lambda p: p.ended.finished_at if p.ended else "",
        default=None,
    )
    if last is not None:
        failure = describe(last)
        return dataclasses.replace(failure, reason=c.REASON_BACKOFF, message=f"{message}; last: {failure.message}")
    if losses.last:
        return Failure(c.REASON_BACKOFF, f"{message}; last: {losses.last.message}")
    # the kubelet keeps no exit code of a pod all of whose containers it has restarted
    most = max((p for p in pods if p.restarts), key=lambda p: p.restarts, default=None)
    if most is None:
        return Failure(c.REASON_BACKOFF, message)
    text = f"the kubelet has restarted pod {most.display_name} in place (restartCount {most.restarts})"
    return Failure(c.REASON_BACKOFF, f"{message}; {text}", most.pod_name)


def _is_counted(pod: PodState) -> bool:
    has_error = pod.ended is not None and pod.ended.code != 0
    return has_error and not pod.deleting and not pod.disrupted and may_be_culprit(pod)
