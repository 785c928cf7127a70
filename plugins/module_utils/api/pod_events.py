"""Reads the Events of pods that do not start, and of batch Jobs without a pod, for what no status says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.object_events import events_of
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import Steps
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parsed import Parsed
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import pod_creation, startup_events
from ansible_collections.dljob.operator.plugins.module_utils.shared import rbac
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState

_REMEMBERED = 2000
"""Pods whose last read a process remembers."""
_reads: WeakKeyDictionary[RestClient, dict[str, datetime]] = WeakKeyDictionary()
"""When a client, which a worker keeps over many batches, has read the Events of a pod, by the pod's uid."""


def explain(context: Context, parsed: Parsed, observed: Observed, now: datetime) -> tuple[Observed, tuple[str, ...]]:
    """``observed`` with the causes that only Events name, and what the operator may not read of them.

    Most jobs need no request: it reads where a pod has not started, or a batch Job has had no pod, for a while. Without
    an answer the status keeps what it says.
    """
    job = parsed.job
    if job is None:
        return observed, ()
    started, unread = _of_pods(context, job, observed, now)
    found, denied = _of_batch_jobs(context, job, started, now)
    return found, rbac.missing_permissions([*sorted(unread), *denied])


def _of_pods(context: Context, job: DLJob, observed: Observed, now: datetime) -> tuple[Observed, list[str]]:
    """With what the kubelet says of pods; see :mod:`..logic.plan.policies.startup_events`."""
    events: dict[str, list[Mapping[str, Any]]] = {}
    errors: list[str] = []

    def read(pod: PodState) -> Steps[None]:
        try:
            events[pod.uid] = yield from events_of(job.namespace, pod.uid)
        except ApiError as e:
            errors.append(e.message)

    due = startup_events.to_read(job, observed, now)
    if due:
        reads = _reads.setdefault(context.client, {})
        context.client.each([pod for pod in due if _may_read(reads, pod, now)], read)
    return startup_events.explained(job, observed, events, now), errors


def _may_read(reads: dict[str, datetime], pod: PodState, now: datetime) -> bool:
    """Whether the last read of the pod is long enough ago; if so it is taken for read at ``now``."""
    last = reads.get(pod.uid)
    if last is not None and abs((now - last).total_seconds()) < startup_events.SHORTEST_INTERVAL:
        return False
    if len(reads) >= _REMEMBERED:
        reads.clear()
    reads[pod.uid] = now
    return True


def _of_batch_jobs(context: Context, job: DLJob, observed: Observed, now: datetime) -> tuple[Observed, list[str]]:
    """With why batch Jobs have no pod, which the Job controller says in Events only: one request for each of them."""
    causes: dict[str, str] = {}
    errors: list[str] = []
    for pod in pod_creation.lacking(job, observed, now):
        if pod.batch_job is None:
            continue
        try:
            events = context.client.run(events_of(job.namespace, pod.batch_job.uid))
            causes[pod.batch_job.uid] = pod_creation.cause(events)
        except ApiError as e:
            causes[pod.batch_job.uid] = ""
            errors.append(e.message)
    return pod_creation.explained(job, observed, causes) if causes else observed, errors
