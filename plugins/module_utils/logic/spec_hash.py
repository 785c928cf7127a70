"""A fingerprint of what a pod was made from, to tell a pod of an older spec from a current one."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.constants import RESTART_SCOPE_JOB
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob, ReplicaGroup


def spec_hash(job: DLJob, group: ReplicaGroup) -> str:
    """The fingerprint, 16 characters.

    It covers what the user wrote and nothing that this program adds: the template, and the shape of the whole cluster
    (with what else of the spec the environment is made from), which every process read when it started. So a new
    release of the operator leaves running pods alone, and a change of the number of replicas restarts them all, since
    a parameter-server cluster cannot learn of it any other way.
    """
    source: dict[str, Any] = {
        "template": group.template,
        "mode": job.mode,
        "runtime_id": job.runtime_id,  # part of the names by which the processes find one another
        # of a dynamic type the others know no member, so that its number is free to change
        "cluster": [[g.type, None if g.type == job.elastic_type else g.replicas, g.port] for g in job.groups],
    }
    if job.run_policy.restart_scope == RESTART_SCOPE_JOB:  # the pods are then not restarted in place
        source["restart_scope"] = True
    if group.default_program:
        source["standard"] = True  # the same container may run its own program or the role's
    if job.options:  # only then: jobs without any keep the fingerprint that their pods have
        source["options"] = job.options
    text = json.dumps(source, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
