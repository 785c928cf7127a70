"""The steps of a suspension, each of which the next reconcile finds recorded, whatever becomes of this one.

1. The status forgets which replicas have completed. Their pods are deleted too, and a job that is resumed before the
   last step would not start them again.
2. All pods are deleted. The other progress stays: it belongs to pods that a denied request may leave.
3. The status says that the job is suspended, and forgets the rest. By this one Kueue gives the quota away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import batch_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import CONDITION_SUSPENDED
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed


def has_completed(status: Mapping[str, Any]) -> bool:
    """Whether the first step is due."""
    return "completed" in status


def without_completed(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status after the first step."""
    return {name: value for name, value in status.items() if name != "completed"}


def survivors(status: Mapping[str, Any], observed: Observed) -> tuple[str, ...]:
    """The uids of the pods, or of the batch Jobs that run them, of a resumed job with this ``status`` that have not
    been deleted, although it says so.

    They are newer than the status, of a resume whose status write has failed, or the cache is older: then an exit of
    one would count for the job that begins anew.
    """
    if not conditions.is_condition_true(conditions.read_conditions(status), CONDITION_SUSPENDED):
        return ()
    return tuple(batch_job.deletion(pod).uid for pod in observed.pods if not pod.deleting)
