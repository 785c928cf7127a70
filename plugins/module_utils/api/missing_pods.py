"""Reads why batch Jobs have no pod: the Job controller says that in Events only."""

from __future__ import annotations

from datetime import datetime

from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.object_events import events_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.parsed import Parsed
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies import pod_creation
from ansible_collections.dljob.operator.plugins.module_utils.shared import rbac
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed


def explain(context: Context, parsed: Parsed, observed: Observed, now: datetime) -> tuple[Observed, tuple[str, ...]]:
    """``observed`` with why batch Jobs of the job have had no pod for some seconds, and what the operator may not read.

    One request for each such Job, none for a job whose batch Jobs have their pods.
    """
    job = parsed.job
    if job is None:
        return observed, ()
    causes: dict[str, str] = {}
    errors: list[str] = []
    for pod in pod_creation.lacking(job, observed, now):
        if pod.batch_job is None:
            continue
        try:
            causes[pod.batch_job.uid] = pod_creation.cause(events_of(context.client, job.namespace, pod.batch_job.uid))
        except ApiError as e:
            causes[pod.batch_job.uid] = ""
            errors.append(e.message)
    return pod_creation.explained(job, observed, causes) if causes else observed, rbac.missing_permissions(errors)
