"""Adds the account to a status that is about to be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import completed, conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import outcome
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.usage import record
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.usage.account import advance
from ansible_collections.dljob.operator.plugins.module_utils.shared.deleted_pods import USAGE
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.usage import QUEUED, SUSPENDED, Facts, PodUses

START_PERIOD = 10
"""Seconds between two accounts of a job that is starting, whose status may change with every pod."""


def with_usage(
    job: DLJob, created: str, status: Mapping[str, Any], read: Callable[[], PodUses], now: datetime
) -> Mapping[str, Any]:
    """``status``, the new one of the job, with the usage until ``now``.

    Not every status of a job that is starting brings it up to date: the times of its pods lose nothing meanwhile.
    ``created`` is the job's creationTimestamp, ``read`` reads the uses of its pods.
    """
    old = record.read(as_mapping(job.status).get(USAGE))
    at = int(now.timestamp())
    since = _seconds(created, at)
    if status.get("phase") == c.PHASE_CREATING and at - (old.as_of if old else since) < START_PERIOD:
        return status
    account = advance(old, facts(job, status, since), read(), at)
    return {**status, USAGE: record.write(account)}


def is_unsettled(job: DLJob) -> bool:
    """Whether a job that has ended, or is suspended, held something when its account was written."""
    is_at_rest = outcome(job.status) is not None or conditions.is_condition_true(
        conditions.read_conditions(job.status), c.CONDITION_SUSPENDED
    )
    return is_at_rest and still_holds(job.status)


def still_holds(status: Mapping[str, Any]) -> bool:
    """Whether the job held something at the time of the account in its ``status``."""
    return bool(as_mapping(status.get(USAGE)).get("held"))


def facts(job: DLJob, status: Mapping[str, Any], created: int) -> Facts:
    """What the account needs to know of the job; ``status`` is its new one."""
    found = conditions.read_conditions(status)
    suspended = conditions.get_condition(found, c.CONDITION_SUSPENDED) or {}
    is_suspended = suspended.get("status") == "True"
    end = outcome(status)
    ended = status.get("completionTime") or (conditions.get_condition(found, end or "") or {}).get("lastTransitionTime")
    rests = QUEUED if job.is_queued or job.held else SUSPENDED
    return Facts(
        created=created,
        replicas=tuple((group.type.lower(), index) for group, index in job.tasks()),
        elastic=job.elastic_type.lower(),
        completed=frozenset(
            (type_, index) for type_, indexes in completed.read(status.get("completed")).items() for index in indexes
        ),
        rests=rests if job.run_policy.suspend or is_suspended else "",
        rested=clock.seconds(suspended.get("lastTransitionTime")) if is_suspended else None,
        started=_seconds(status.get("startTime"), created),
        ended=None if end is None else _seconds(ended, created),
        stalled=any(
            conditions.is_condition_true(conditions.read_conditions(one), c.CONDITION_STALLED)
            for one in (job.status, status)
        ),
    )


def _seconds(text: object, otherwise: int) -> int:
    found = clock.seconds(text)
    return otherwise if found is None else found
