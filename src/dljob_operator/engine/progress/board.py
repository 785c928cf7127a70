"""The last reports of the jobs, in memory, until their status has them."""

from __future__ import annotations

import heapq
import statistics
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.event import timestamp
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import (
    HEARD,
    PERIOD,
    RANKS,
    TRAINER_STATUS,
    UPDATED,
)

from dljob_operator.engine.progress.report import Report
from dljob_operator.engine.progress.reporter import Reporter
from dljob_operator.json_texts import JsonTexts, text_of

_MOST_RANKS = 10_000
"""Of one job whose step times are kept."""
_OLDEST, _SAID = 8, 80
"""Replicas of a job that stalls of which the reconcile learns what they said last, and characters of that."""
_MOST_ADDRESSES = 4096
_SOON = 5
"""Seconds between two status writes of a job that has stalled."""
_STEPS = 8
"""Step times of a rank whose median counts: a single slow step is no straggler."""


@dataclass
class _Rank:
    node: str
    pod: str
    heard: float
    said: str = ""
    steps: deque[float] = field(default_factory=lambda: deque(maxlen=_STEPS))


@dataclass
class _Job:
    namespace: str
    kind: str
    name: str
    last: Report = field(default_factory=Report)
    at: datetime | None = None
    began: tuple[datetime, int] | None = None
    """The second report with a percentage since the program began, or began again: the rate is counted from there. The
    first may be 0% although it goes on from a checkpoint, as with transformers."""
    asked: datetime | None = None
    """When a status write was last asked for."""
    ranks: dict[str, _Rank] = field(default_factory=dict)
    """By replica; of a job whose rank 0 alone reports, that one."""
    heard: float = 0.0
    """The monotonic time of the last report of any replica, and from where it came."""
    address: str = ""


@dataclass(frozen=True)
class Shown:
    """For the metrics."""

    namespace: str
    kind: str
    name: str
    percent: int | None
    remaining: int | None
    at: datetime


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ProgressBoard:
    """It is safe to use from several threads. ``now`` and ``clock``, which returns monotonic seconds, give the times;
    those of programs are not used."""

    def __init__(self, now: Callable[[], datetime] = _utc_now, clock: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._lost = self._lost_of_any = clock()
        self._lost_from: OrderedDict[str, float] = OrderedDict()

    def lost(self, address: str = "") -> None:
        """A report from that address may have been lost, or for "" any one: its silence says nothing until now."""
        with self._lock:
            self._lost_of_any = self._clock()
            if not address:
                self._lost = self._lost_of_any
                return
            self._lost_from[address] = self._lost_of_any
            self._lost_from.move_to_end(address)
            if len(self._lost_from) > _MOST_ADDRESSES:
                self._lost = max(self._lost, self._lost_from.popitem(last=False)[1])

    def report(self, reporter: Reporter, report: Report) -> bool:
        """Note a report. Returns whether the job's status is due."""
        now = self._now()
        with self._lock:
            job = self._jobs.setdefault(reporter.job, _Job(reporter.namespace, reporter.kind, reporter.name))
            job.heard, job.address = self._clock(), reporter.address
            _note_rank(job, reporter, report)
            if reporter.is_first:
                _note(job, report, now)
            if job.at is None and not reporter.is_stalled:
                return False
            period, times = (_SOON, [job.asked]) if reporter.is_stalled else (PERIOD, [reporter.written, job.asked])
            last = max((one for one in times if one is not None), default=None)
            if last is not None and 0 <= (now - last).total_seconds() < period:
                return False
            job.asked = now
            return True

    def discard(self, job: str) -> None:
        """The job (UID) was deleted."""
        with self._lock:
            self._jobs.pop(job, None)

    def of(self, job: str) -> JsonTexts:
        """What the reconcile gets; see the collection's `shared/progress.py`."""
        with self._lock:
            known = self._jobs.get(job)
            fields = _fields(known) if known is not None and known.at is not None else {}
            return JsonTexts([text_of({**fields, HEARD: self._heard(known)})])

    def _heard(self, job: _Job | None) -> dict[str, Any]:
        now = self._clock()
        if job is None:
            return {"listening": now - self._lost_of_any, "age": None, "replicas": 0, "oldest": []}
        oldest = heapq.nsmallest(_OLDEST, job.ranks.items(), key=lambda item: item[1].heard)
        return {
            "listening": now - max(self._lost, self._lost_from.get(job.address, self._lost)),
            "age": now - job.heard,
            "replicas": len(job.ranks),
            "oldest": [[name, now - rank.heard, rank.said] for name, rank in oldest],
        }

    def shown(self) -> Iterator[Shown]:
        """The jobs that have reported."""
        with self._lock:
            there = [(one, one.at) for one in self._jobs.values() if one.at is not None]
        for job, at in there:
            yield Shown(job.namespace, job.kind, job.name, job.last.percent, _remaining(job, at), at)


def _note(job: _Job, report: Report, now: datetime) -> None:
    last = job.last.percent
    if report.percent is not None:
        if last is None or report.percent < last:
            job.began = None  # it has begun, or begun again, perhaps from a checkpoint
        elif job.began is None:
            job.began = now, report.percent
    job.last, job.at = report, now


def _note_rank(job: _Job, reporter: Reporter, report: Report) -> None:
    if reporter.replica not in job.ranks and len(job.ranks) >= _MOST_RANKS:
        return
    rank = job.ranks.get(reporter.replica)
    if rank is None or rank.pod != reporter.pod:
        rank = job.ranks[reporter.replica] = _Rank(reporter.node, reporter.pod, job.heard)
    rank.heard, rank.said = job.heard, _said(report)
    if report.step_seconds is not None:
        rank.steps.append(report.step_seconds)


def _said(report: Report) -> str:
    percent = [] if report.percent is None else [f"{report.percent}%"]
    return ", ".join([*percent, *(f"{name} {value}" for name, value in report.metrics[:3])])[:_SAID]


def _fields(job: _Job) -> dict[str, Any]:
    report, at = job.last, job.at
    assert at is not None
    remaining = _remaining(job, at)
    status = {
        **({} if report.percent is None else {"progressPercentage": report.percent}),
        **({} if remaining is None else {"estimatedRemainingSeconds": remaining}),
        **({"metrics": [{"name": name, "value": value} for name, value in report.metrics]} if report.metrics else {}),
        UPDATED: timestamp(at),
    }
    steps = {name: statistics.median(rank.steps) for name, rank in job.ranks.items() if rank.steps}
    return {TRAINER_STATUS: status, **({RANKS: _ranks(job.ranks, steps)} if steps else {})}


def _remaining(job: _Job, at: datetime) -> int | None:
    """What the program says, else what follows from its percentages."""
    report = job.last
    if report.remaining is not None or report.percent is None or job.began is None:
        return report.remaining
    began, first = job.began
    passed, done = (at - began).total_seconds(), report.percent - first
    return round((100 - report.percent) * passed / done) if done > 0 and passed > 0 else None


def _ranks(ranks: Mapping[str, _Rank], steps: Mapping[str, float]) -> dict[str, Any]:
    slowest = max(steps, key=lambda name: steps[name])
    return {
        "reporting": len(steps),
        "medianStepSeconds": round(statistics.median(steps.values()), 3),
        "slowest": {
            "replica": slowest,
            "pod": ranks[slowest].pod,
            "node": ranks[slowest].node,
            "stepSeconds": round(steps[slowest], 3),
        },
    }
