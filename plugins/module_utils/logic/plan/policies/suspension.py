"""The steps of a suspension, each of which the next reconcile finds recorded, whatever becomes of this one.

1. The status forgets which replicas have completed. Their pods are deleted too, and a job that is resumed before the
   last step would not start them again.
2. All pods are deleted. The other progress stays: it belongs to pods that a denied request may leave.
3. The status says that the job is suspended, and forgets the rest. By this one Kueue gives the quota away.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import batch_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import StatusChanges
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import CONDITION_SUSPENDED
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import (
    IMMEDIATE,
    Deletion,
    Fact,
    Plan,
    presume,
)


def first_step(status: Mapping[str, Any]) -> Plan | None:
    """The plan of the first step, ``None`` where it is not due."""
    if "completed" not in status:
        return None
    kept = {name: value for name, value in status.items() if name != "completed"}
    return Plan(status=kept, requeue_after=IMMEDIATE)


def later_steps(gone: Sequence[Deletion], others: Plan, report: StatusChanges) -> Plan:
    """The plan of the second step as long as there are pods, whose deletions are ``gone``, and of the third one then.

    ``others`` has the writes of the job's other objects, ``report`` the status of a suspended job and its Events.
    """
    if gone:
        presumes = presume({Fact.SPEC_IS_CURRENT: True})
        deletions = (*gone, *others.deletions)
        return dataclasses.replace(others, deletions=deletions, requeue_after=IMMEDIATE, presumes=presumes)
    status = report.status()
    presumes = presume({Fact.PODS_ARE_KNOWN: status is not None})
    return dataclasses.replace(others, status=status, events=report.events, presumes=presumes)


def is_recorded(status: Mapping[str, Any]) -> bool:
    """Whether that status says that the job is suspended."""
    return conditions.is_condition_true(conditions.read_conditions(status), CONDITION_SUSPENDED)


def survivors(status: Mapping[str, Any], observed: Observed) -> tuple[str, ...]:
    """The uids of the pods, or of the batch Jobs that run them, of a resumed job with this ``status`` that have not
    been deleted, although it says so.

    They are newer than the status, of a resume whose status write has failed, or the cache is older: then an exit of
    one would count for the job that begins anew.
    """
    if not is_recorded(status):
        return ()
    return tuple(batch_job.deletion(pod).uid for pod in observed.pods if not pod.deleting)
