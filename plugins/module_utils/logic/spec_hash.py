"""The spec hash: it distinguishes a pod of an older spec from a current one."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.constants import (
    RESTART_ALWAYS,
    RESTART_ON_FAILURE,
    RESTART_SCOPE_JOB,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup


def spec_hash(job: DLJob, group: ReplicaGroup) -> str:
    """The spec hash of the pods of ``group``, 16 characters.

    It covers the user's template, the size and ports of all groups, and the other fields of the spec from which the
    environment is computed, which every process reads when it starts. Of what the operator adds it covers only a
    container that the template may lack and the pod hook supplies, by its name and image. So a new release of the
    operator leaves running pods alone, and a change of the number of replicas restarts all of them, because a
    parameter-server cluster cannot learn of the change in another way.
    """
    source: dict[str, Any] = {
        "template": group.template,
        "mode": job.mode,
        "runtime_id": job.runtime_id,  # part of the DNS names of the replicas
        # the other replicas do not know the members of an elastic type, or learn of them, so that its number may change
        "cluster": [
            [g.type, None if g.resizable or g.type == job.elastic_type else g.replicas, g.port] for g in job.groups
        ],
    }
    if job.run_policy.restart_scope == RESTART_SCOPE_JOB:  # the kubelet then does not restart containers in place
        source["restart_scope"] = True
    elif job.run_policy.failure_rules and group.restart_policy in (RESTART_ON_FAILURE, RESTART_ALWAYS):
        source["failure_policy"] = True  # nor then: its restarts would bypass the rules
    if group.is_completed:
        source["standard"] = True  # the same container may run its own program or the pod hook's
    if job.options:  # only if there are any, so that pods without options keep their hash
        source["options"] = job.options
    text = json.dumps(source, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
