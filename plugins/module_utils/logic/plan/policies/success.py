"""When a job has succeeded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.pod_ends import has_succeeded
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import MODE_LOCAL
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import SUCCEEDS_BY_ALL, SUCCEEDS_BY_ANY
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed


def unfinished(observed: Observed, completed: Mapping[str, set[int]]) -> Observed:
    """``observed`` without the pods of the ``completed`` replicas (indexes by lower-case type).

    What happens to such a pod later is no failure: a sidecar keeps it running, and a drain or an eviction ends it.
    """
    if not any(completed.values()):
        return observed
    pods = tuple(pod for pod in observed.pods if pod.index not in completed.get(pod.type, ()))
    return dataclasses.replace(observed, pods=pods)


def succeeded(job: DLJob, observed: Observed, completed: Mapping[str, set[int]]) -> bool:
    """Whether ``job`` has succeeded: its success target has, or by ``succeeds_by`` or mode all replicas of its type.

    ``completed`` has the replicas (by lower-case type) that have succeeded, whose pods may no longer exist.
    """
    done = set(completed.get(job.success_target.type.lower(), ()))
    done.update(p.index for p in observed.pods_of(job.success_target.type) if has_succeeded(p))
    if job.succeeds_by == SUCCEEDS_BY_ANY:
        return bool(done)
    if job.succeeds_by == SUCCEEDS_BY_ALL or job.mode == MODE_LOCAL:
        group = job.group(job.success_target.type)
        return group is not None and done.issuperset(range(group.replicas))
    return job.success_target.index in done
