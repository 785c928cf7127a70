"""Reads the Events of pods that do not start, for what the kubelet says nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.object_events import events_of
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.logic.parsed import Parsed
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies import startup_events
from ansible_collections.dljob.operator.plugins.module_utils.shared import rbac
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState

_REMEMBERED = 2000
"""Pods whose last read a process remembers."""
_reads: WeakKeyDictionary[RestClient, dict[str, datetime]] = WeakKeyDictionary()
"""When a client, which a worker keeps over many batches, has read the Events of a pod, by the pod's uid."""


def explain(context: Context, parsed: Parsed, observed: Observed, now: datetime) -> tuple[Observed, tuple[str, ...]]:
    """``observed`` with the causes that the Events name, and what the operator may not read.

    It reads only where a pod has not started for a while; see :mod:`..logic.policies.startup_events`. Without an answer
    the status keeps what it says.
    """
    job = parsed.job
    if job is None:
        return observed, ()
    events: dict[str, list[Mapping[str, Any]]] = {}
    errors: list[str] = []

    def read(pod: PodState) -> None:
        try:
            events[pod.uid] = events_of(context.client, job.namespace, pod.uid)
        except ApiError as e:
            errors.append(e.message)

    due = startup_events.to_read(job, observed, now)
    if due:
        reads = _reads.setdefault(context.client, {})
        context.client.executor.map([pod for pod in due if _may_read(reads, pod, now)], read)
    return startup_events.explained(job, observed, events, now), rbac.missing_permissions(sorted(errors))


def _may_read(reads: dict[str, datetime], pod: PodState, now: datetime) -> bool:
    """Whether the last read of the pod is long enough ago; if so it is taken for read at ``now``."""
    last = reads.get(pod.uid)
    if last is not None and abs((now - last).total_seconds()) < startup_events.SHORTEST_INTERVAL:
        return False
    if len(reads) >= _REMEMBERED:
        reads.clear()
    reads[pod.uid] = now
    return True
