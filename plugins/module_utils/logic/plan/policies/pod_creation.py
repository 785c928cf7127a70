"""Why a batch Job that runs a replica has no pod: what its controller reports only in an Event.

Where a quota or an admission rule denies the pod, the Job controller tries it again, later each time, and writes an
Event ``FailedCreate``. The status of the Job says nothing of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import refusal
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import has_finished
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState

USUAL = 5.0
"""Seconds in which the Job controller creates a pod on a loaded cluster. The Events are read only after them."""
LONGEST = 60.0
"""Seconds until the next look at a batch Job that has had no pod for two minutes or more."""
DENIED, CREATED = "FailedCreate", "SuccessfulCreate"
UNKNOWN = "the Job controller has created no pod for it yet"


def lacking(job: DLJob, observed: Observed, now: datetime) -> tuple[PodState, ...]:
    """The replicas of ``job`` whose batch Jobs have had no pod for longer than :data:`USUAL`, without a cause yet."""
    if job.run_policy.suspend or has_finished(job):
        return ()
    return tuple(
        pod
        for pod in observed.pods
        if pod.lacks_pod_since and not pod.deleting and not pod.waiting and _waited(pod, now) >= USUAL
    )


def next_check(observed: Observed, now: datetime) -> float | None:
    """Seconds until the cause is to be read, the first time or again; ``None`` where no batch Job lacks a pod."""
    waits = [_waited(pod, now) for pod in observed.pods if pod.lacks_pod_since and not pod.deleting]
    return min((USUAL - w if w < USUAL else min(max(USUAL, w / 2), LONGEST) for w in waits), default=None)


def _waited(pod: PodState, now: datetime) -> float:
    # the clock of this process may be behind the one that set the time
    return max(0.0, clock.seconds_since(pod.lacks_pod_since, now) or 0.0)


def cause(events: Iterable[Mapping[str, Any]]) -> str:
    """What the newest of the ``events`` on a batch Job says of its last try to create a pod; "" where that succeeded,
    or none is known."""
    about = [one for one in events if one.get("reason") in (DENIED, CREATED)]
    newest = max(about, key=_time, default=None)
    if newest is None or newest["reason"] == CREATED:
        return ""
    text = refusal.without_pod_name(str(newest.get("message") or ""))
    return f"{DENIED}: {text}".rstrip(": ")


def _time(event: Mapping[str, Any]) -> str:
    """RFC 3339, to the second: an Event of the newer API has microseconds, and no lastTimestamp."""
    series = event.get("series") or {}
    created = (event.get("metadata") or {}).get("creationTimestamp")
    times = (event.get("lastTimestamp"), series.get("lastObservedTime"), event.get("eventTime"), created)
    return max(str(one or "")[:19] for one in times)


def explained(job: DLJob, observed: Observed, causes: Mapping[str, str]) -> Observed:
    """``observed`` with the ``causes``, by the uid of the batch Job, of those that lack a pod.

    The present reason stays where only what others use of a quota has changed. A replica that waits for its next pod is
    explained only by a denial: the Job controller delays the next one for minutes.
    """

    def state(pod: PodState) -> PodState:
        found = causes.get(pod.batch_job.uid) if pod.batch_job else None
        if found is None:
            return pod
        text = found or ("" if pod.has_pod else UNKNOWN)
        return dataclasses.replace(pod, waiting=_as_before(job, pod, text))

    return dataclasses.replace(observed, pods=tuple(map(state, observed.pods)))


def is_denied(pod: PodState) -> bool:
    """Whether the controller of the replica's batch Job cannot create its pod."""
    return bool(pod.lacks_pod_since) and pod.waiting.startswith(DENIED)


def subject(pod: PodState) -> str:
    """What the reason of a job names as waiting: the batch Job that lacks a pod, or the pod."""
    return f"batch Job {pod.batch_job.name}" if pod.batch_job and pod.lacks_pod_since else pod.display_name


def _as_before(job: DLJob, pod: PodState, text: str) -> str:
    before = str(job.status.get("reason") or "").removeprefix(f"{subject(pod)}: ")
    return before if refusal.is_same(before, text) else text
