"""``runPolicy.maxRestartsPerReplica``: how often one replica may restart."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import explain, may_be_culprit
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import NONE, Losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.retries import key
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import PodState


def over_limit(
    job: DLJob, retries: Mapping[str, int], pods: Sequence[PodState], losses: Losses = NONE
) -> Failure | None:
    """The failure of a job one of whose replicas restarted more often than the field allows, in place or by a new pod.

    ``retries`` are the counted restarts by replica, ``pods`` those of the current spec. Restarts that are consequences
    of the loss of another replica do not count.
    """
    limit = job.run_policy.max_restarts_per_replica
    if limit is None:
        return None
    forgiven = losses.forgiven(retries, pods)
    by_replica = {key(pod.type, pod.index): pod for pod in pods if not pod.deleting}
    for group, index in job.tasks():
        name = key(group.type, index)
        pod = by_replica.get(name)
        restarts = retries.get(name, 0) + (pod.restarts if pod else 0) - forgiven.get(name, 0)
        if restarts <= limit:
            continue
        message = (
            f"replica {name} ended {restarts} times with an error, spec.runPolicy.maxRestartsPerReplica allows {limit} "
            "restarts"
        )
        if pod is None or not may_be_culprit(pod):
            return Failure(c.REASON_REPLICA_BACKOFF, message)
        if pod.ended is None or not pod.ended.code or pod.disrupted:
            return Failure(c.REASON_REPLICA_BACKOFF, message, pod.pod_name)
        last = explain(job, pod)
        return dataclasses.replace(last, reason=c.REASON_REPLICA_BACKOFF, message=f"{message}; last: {last.message}")
    return None
