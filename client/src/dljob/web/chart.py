"""What is drawn: replicas over time, and GPUs by namespace. Pure; lengths are in per mille of the width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from dljob.kinds import Resource, kind_of
from dljob.times import time_of
from dljob.usage import node_of
from dljob.view import FINAL, QUEUED, SUSPENDED, JobView, replica_of

WIDTH = 1000
MOST_ROWS = 200
"""Replicas that are drawn at most."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a row."""

    start: int
    length: int
    kind: str
    """waiting, starting, running, succeeded or failed: a class of the style sheet."""
    title: str


@dataclass(frozen=True, slots=True)
class Row:
    """A pod."""

    name: str
    node: str
    bars: tuple[Bar, ...]


def timeline(job: Resource, pods: Iterable[Resource], now: datetime) -> tuple[Sequence[Row], int]:
    """The pods of a job from its creation until now, by replica, and how many are left out.

    A pod waits until it has a node, starts until its containers run, and then runs until they have ended.
    """
    begin = time_of((job.get("metadata") or {}).get("creationTimestamp"))
    found = sorted(pods, key=lambda pod: _order(pod, job))
    if begin is None or not found:
        return (), 0
    spans = [(pod, _spans(pod, now)) for pod in found]
    end = max((stop for _, parts in spans for _, stop, _ in parts), default=now)
    total = max((end - begin).total_seconds(), 1.0)
    rows = []
    for pod, parts in spans[:MOST_ROWS]:
        bars = []
        for start, stop, kind in parts:
            left = _share(start, begin, total)
            length = max(2, _share(stop, begin, total) - left)
            bars.append(Bar(left, length, kind, f"{kind}: {start:%H:%M:%S} to {stop:%H:%M:%S}"))
        rows.append(Row(str(pod["metadata"]["name"]), node_of(pod), tuple(bars)))
    return rows, max(0, len(found) - MOST_ROWS)


def _order(pod: Resource, job: Resource) -> tuple[str, int, str]:
    type_, index = replica_of(pod, kind_of(job), job)
    return type_, -1 if index is None else index, str((pod.get("metadata") or {}).get("creationTimestamp"))


def _spans(pod: Resource, now: datetime) -> list[tuple[datetime, datetime, str]]:
    status = pod.get("status") or {}
    created = time_of((pod.get("metadata") or {}).get("creationTimestamp"))
    if created is None:
        return []
    conditions = {one.get("type"): one for one in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled") or {}
    bound = time_of(scheduled.get("lastTransitionTime")) if scheduled.get("status") == "True" else None
    states = [one.get("state") or {} for one in status.get("containerStatuses") or ()]
    ended = [one["terminated"] for one in states if one.get("terminated")]
    starts = [time_of((one.get("running") or one.get("terminated") or {}).get("startedAt")) for one in states]
    begun = min((one for one in starts if one), default=None)
    finishes = [one for one in (time_of(each.get("finishedAt")) for each in ended) if one]
    is_over = bool(states) and len(ended) == len(states)
    over = max(finishes) if is_over and finishes else None
    points = [created, bound, begun, over or (now if begun else None)]
    phase = status.get("phase")
    last = "failed" if over and phase == "Failed" else "succeeded" if over else "running"
    parts = []
    for start, stop, kind in zip(points, points[1:], ("waiting", "starting", last), strict=False):
        if start is None:
            break
        parts.append((start, max(start, stop or over or now), kind))
        if stop is None:
            break
    return parts


def _share(moment: datetime, begin: datetime, total: float) -> int:
    return max(0, min(WIDTH, round(WIDTH * (moment - begin).total_seconds() / total)))


@dataclass(frozen=True, slots=True)
class Share:
    """The GPUs that the jobs of a namespace request."""

    namespace: str
    gpus: int
    jobs: int
    length: int


def shares(jobs: Iterable[JobView]) -> Sequence[Share]:
    """Of jobs that have not ended and that are not queued; the largest first."""
    gpus: dict[str, int] = {}
    counts: dict[str, int] = {}
    for job in jobs:
        if job.state not in (*FINAL, QUEUED, SUSPENDED) and job.requests.gpus:
            gpus[job.namespace] = gpus.get(job.namespace, 0) + job.requests.gpus
            counts[job.namespace] = counts.get(job.namespace, 0) + 1
    most = max((1, *gpus.values()))
    found = [Share(name, number, counts[name], max(2, WIDTH * number // most)) for name, number in gpus.items()]
    return sorted(found, key=lambda one: (-one.gpus, one.namespace))
