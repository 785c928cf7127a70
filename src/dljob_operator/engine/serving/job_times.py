"""How long jobs take to start and to end, from the times in their statuses. See `metrics` for the names.

A job counts once for each histogram, whatever happens to it later: a restart, a resumption or an edit adds nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import (
    STATE_RUNNING,
)
from prometheus_client import CollectorRegistry, Histogram

from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.statuses import conditions_of, end_of, status_of, time_of, true_conditions

_HOUR = 3600
_BUCKETS = (1, 5, 15, 60, 300, 900, _HOUR, 4 * _HOUR, 12 * _HOUR, 24 * _HOUR, 72 * _HOUR, 168 * _HOUR)
"""Seconds, to 7 days."""
_RESTARTING = "Restarting"
_FIRST_POD, _ALL_RUNNING, _END = 1, 2, 4
_ALL = _FIRST_POD | _ALL_RUNNING | _END
Key = tuple[str, str]
"""The kind and the UID of a job."""


class JobTimes:
    """Observes the times of each job once. It is safe to use from several threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(f"dljob_job_{name}_seconds", text, ("kind", *labels), buckets=_BUCKETS, registry=registry)

        self._first_pod = histogram("first_pod", "From the creation of a job to its first pod")
        self._running = histogram("running", "From the creation of a job until all its replicas ran")
        self._duration = histogram("duration", "From the start of a job to its end", "result")
        self._lock = threading.Lock()
        self._awaited: dict[Key, int] = {}
        """What has not yet been observed of each job, of `_ALL`."""

    def job_changed(self, key: Key, change: Change, now: datetime, *, is_new: bool) -> None:
        """Observe what a change of a job brings: seconds, by the kind in ``key``.

        ``now`` is the current time, with a time zone; a later time counts for nothing yet. ``is_new`` is False for a
        job that may be older than this process: what it had reached when it was first seen never counts.
        """
        with self._lock:
            if change.new is None:
                self._awaited.pop(key, None)
                return
            awaited = self._awaited.get(key)
            if awaited is None:
                known = {} if is_new else status_of(change.new if change.old is None else change.old)
                awaited = _ALL & ~_reached(known)
            for measure, seconds, result in _measures(change.new, now):
                if awaited & measure:
                    awaited &= ~measure
                    self._observe(measure, key[0], seconds, result)
            self._awaited[key] = awaited

    def _observe(self, measure: int, kind: str, seconds: float, result: str) -> None:
        if measure == _FIRST_POD:
            self._first_pod.labels(kind).observe(seconds)
        elif measure == _ALL_RUNNING:
            self._running.labels(kind).observe(seconds)
        else:
            self._duration.labels(kind, result).observe(seconds)


def _measures(job: Object, now: datetime) -> Iterator[tuple[int, float, str]]:
    """What a job has reached at credible times, with its seconds, and the result of one that has ended."""
    created = time_of(job["metadata"].get("creationTimestamp"))
    if created is None:
        return
    status = status_of(job)
    begun = time_of(status.get("startTime"))
    running = time_of(true_conditions(status).get(STATE_RUNNING))
    ended, result = time_of(status.get("completionTime")), end_of(status).lower()
    if begun is not None and created <= begun <= now:
        yield _FIRST_POD, (begun - created).total_seconds(), ""
    if running is not None and created <= running <= now:
        yield _ALL_RUNNING, (running - created).total_seconds(), ""
    if result and begun is not None and ended is not None and created <= begun <= ended <= now:
        yield _END, (ended - begun).total_seconds(), result


def _reached(status: Mapping[str, Any]) -> int:
    """What a job of that status has behind it, at whatever time. One that restarts has run, or tried to."""
    has_run = any(one.get("type") in (STATE_RUNNING, _RESTARTING) for one in conditions_of(status))
    reached = _FIRST_POD if status.get("startTime") else 0
    reached |= _ALL_RUNNING if has_run else 0
    return reached | (_ALL if end_of(status) else 0)
