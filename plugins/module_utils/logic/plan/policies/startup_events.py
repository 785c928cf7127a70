"""Why a pod does not start, where only its Events say so: a volume that is not there, a sandbox that cannot be created.

The kubelet then shows the containers as ``ContainerCreating``, as it does while it pulls an image. So the reconcile
reads the Events of pods that take long, and this module decides of which pods, and what of the Events to report.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import managers
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import has_finished
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, PodState

NOTICED = 10.0
"""Seconds after the scheduling of a pod, or the end of its last init container, from which its Events are read. Where
the image is present a container starts within two to four seconds, so a healthy job has no such pod."""
LONGEST_INTERVAL = 120.0
"""Seconds between two reads at most. The interval doubles until then: a large image may take minutes."""
SHORTEST_INTERVAL = 5.0
"""Seconds between two reads of the same pod at least, whatever else triggers reconciles of its job."""
MOST = 3
"""Pods whose Events one reconcile reads, of different templates first: pods of one template mostly share the cause."""

_REPORTED_ELSEWHERE = frozenset(
    (
        "FailedScheduling",  # the pod's condition; it is scheduled by now
        *("Failed", "BackOff", "InspectFailed", "ErrImageNeverPull"),  # the state of the container
    )
)
_HARMLESS = frozenset(
    (
        *("DNSConfigForming", "FailedToRetrieveImagePullSecret", "InvalidEnvironmentVariableNames", "Unhealthy"),
        *("NodeNotReady", "Preempted", "TaintManagerEviction"),
    )
)
"""Warnings of pods that start nevertheless, or of which the status reports the consequence."""
_BEGUN = frozenset(("Pulling", "Pulled", "Created", "Started"))
"""Events that come after the volumes and the sandbox: what a warning before them was about is over."""
_GENERIC = "Unable to attach or mount volumes"
"""The kubelet's summary of other warnings, which name the cause."""
_STALE = 300.0
"""Seconds after which a warning that did not come again, while another one did, is over. The kubelet's own interval
grows to two minutes, and it records one Event of an object in five minutes where there were many."""
_LONGEST_TEXT = 500
_COMBINED = "(combined from similar events): "
_IDENTIFIER = re.compile(r"\b[0-9a-f]{32,}\b")
"""Of a sandbox, which each try makes anew."""
_VARYING = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"  # a request
    r"|\b\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)?"  # a time
    r"|\b(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+\b"  # a duration
    r"|(?<=[\d\]]):\d{2,5}\b"  # a port
    r"|\(x\d+ over [^)]*\)"
)


def to_read(job: DLJob, observed: Observed, now: datetime) -> tuple[PodState, ...]:
    """The pods whose Events the plan needs."""
    return tuple(pod for pod in _chosen(job, observed) if _is_due(job, pod, now))


def next_check(job: DLJob, observed: Observed, now: datetime) -> float | None:
    """Seconds until the next time at which Events are to be read, ``None`` where all pods have started."""
    return min((_left(pod, now) for pod in _chosen(job, observed)), default=None)


def explained(
    job: DLJob, observed: Observed, events: Mapping[str, Sequence[Mapping[str, Any]]], now: datetime
) -> Observed:
    """``observed`` with the causes in ``events``, by the uid of their pod.

    A pod of which none were read keeps the cause that the status names, so that the reason does not come and go.
    """
    causes: dict[str, str] = {}
    for pod in _unstarted(job, observed):
        if not _is_due(job, pod, now):
            continue
        before = _cause_in_status(job, pod)
        causes[pod.uid] = cause(events[pod.uid], before) if pod.uid in events else before
    if not any(causes.values()):
        return observed
    pods = tuple(dataclasses.replace(pod, waiting=causes.get(pod.uid) or pod.waiting) for pod in observed.pods)
    return dataclasses.replace(observed, pods=pods)


def cause(events: Sequence[Mapping[str, Any]], before: str = "") -> str:
    """``<reason>: <message>`` of the warning that says why the pod does not start, "" where there is none.

    ``before`` is the present cause. It stays while a warning repeats it, also with another duration or request number.
    """
    begun = max((_last_time(one) for one in events if one.get("reason") in _BEGUN), default=_NEVER)
    warnings = [(_text(one), _last_time(one)) for one in events if _counts(one) and _last_time(one) > begun]
    if not warnings:
        return ""
    newest = max(time for _, time in warnings)
    current = [text for text, time in warnings if (newest - time).total_seconds() <= _STALE]
    if any(_VARYING.sub("", text) == _VARYING.sub("", before) for text in current):
        return before
    latest = dict(sorted(warnings, key=lambda one: one[1]))
    return min(current, key=lambda text: (_GENERIC in text, newest - latest[text], text))


_NEVER = datetime.min.replace(tzinfo=UTC)


def _counts(event: Mapping[str, Any]) -> bool:
    return event.get("type") == "Warning" and event.get("reason") not in _REPORTED_ELSEWHERE | _HARMLESS


def _last_time(event: Mapping[str, Any]) -> datetime:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), *(event.get(x) for x in ("lastTimestamp", "eventTime", "firstTimestamp")))
    return max((moment for one in times if (moment := clock.parse(one))), default=_NEVER)


def _text(event: Mapping[str, Any]) -> str:
    message = " ".join(str(event.get("message") or "").removeprefix(_COMBINED).split())
    text = f"{event.get('reason')}: {_IDENTIFIER.sub('...', message)}".rstrip(": ")
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


def _unstarted(job: DLJob, observed: Observed) -> Iterator[PodState]:
    if job.run_policy.suspend or not managers.is_ours(job) or has_finished(job):
        return
    for pod in observed.pods:
        if pod.unstarted_since and not (pod.deleting or pod.terminating):
            yield pod


def _chosen(job: DLJob, observed: Observed) -> list[PodState]:
    """Those of the pods that have not started whose Events are read, now or later: the first of each template first."""
    pods = sorted(_unstarted(job, observed), key=lambda pod: (pod.unstarted_since, pod.name))
    seen: set[tuple[str, str]] = set()
    first: list[PodState] = []
    others: list[PodState] = []
    for pod in pods:
        (others if (pod.type, pod.group) in seen else first).append(pod)
        seen.add((pod.type, pod.group))
    return [*first, *others][:MOST]


def _waited(pod: PodState, now: datetime) -> float:
    return max(0.0, clock.seconds_since(pod.unstarted_since, now) or 0.0)  # the clock of its node may be wrong


def _is_due(job: DLJob, pod: PodState, now: datetime) -> bool:
    limit = job.run_policy.pending_timeout_seconds
    waited = clock.seconds_since(pod.pending_since, now)
    is_late = limit is not None and waited is not None and waited >= limit  # the failure quotes the cause
    return is_late or _waited(pod, now) >= NOTICED


def _left(pod: PodState, now: datetime) -> float:
    """Seconds until the next read: 10, 20, 40, 80, 160 seconds after the beginning, and then every two minutes."""
    waited, due, interval = _waited(pod, now), NOTICED, NOTICED
    while due <= waited:
        due += interval
        interval = min(2 * interval, LONGEST_INTERVAL)
    return due - waited


def _cause_in_status(job: DLJob, pod: PodState) -> str:
    reason, prefix = str(job.status.get("reason") or ""), f"{pod.display_name}: "
    return reason.removeprefix(prefix) if reason.startswith(prefix) else ""
