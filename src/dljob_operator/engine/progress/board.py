"""The last reports of the jobs, in memory, until their status has them."""

from __future__ import annotations

import statistics
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.event import timestamp
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import (
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
_STEPS = 8
"""Step times of a rank whose median counts: a single slow step is no straggler."""


@dataclass
class _Rank:
    node: str
    pod: str
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
    """It is safe to use from several threads. ``now`` is the clock; times of programs are not used."""

    def __init__(self, now: Callable[[], datetime] = _utc_now) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}

    def report(self, reporter: Reporter, report: Report) -> bool:
        """Note a report. Returns whether the job's status is due."""
        now = self._now()
        with self._lock:
            job = self._jobs.setdefault(reporter.job, _Job(reporter.namespace, reporter.kind, reporter.name))
            if report.step_seconds is not None:
                _note_step(job, reporter, report.step_seconds)
            if reporter.is_first:
                _note(job, report, now)
            if job.at is None:
                return False
            last = max((one for one in (reporter.written, job.asked) if one is not None), default=None)
            if last is not None and 0 <= (now - last).total_seconds() < PERIOD:
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
            return JsonTexts([text_of(_fields(known))] if known is not None and known.at is not None else [])

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


def _note_step(job: _Job, reporter: Reporter, seconds: float) -> None:
    if reporter.replica not in job.ranks and len(job.ranks) >= _MOST_RANKS:
        return
    rank = job.ranks.get(reporter.replica)
    if rank is None or rank.pod != reporter.pod:
        rank = job.ranks[reporter.replica] = _Rank(reporter.node, reporter.pod)
    rank.steps.append(seconds)


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
    return {TRAINER_STATUS: status, **({RANKS: _ranks(job.ranks)} if job.ranks else {})}


def _remaining(job: _Job, at: datetime) -> int | None:
    """What the program says, else what follows from its percentages."""
    report = job.last
    if report.remaining is not None or report.percent is None or job.began is None:
        return report.remaining
    began, first = job.began
    passed, done = (at - began).total_seconds(), report.percent - first
    return round((100 - report.percent) * passed / done) if done > 0 and passed > 0 else None


def _ranks(ranks: Mapping[str, _Rank]) -> dict[str, Any]:
    steps = {name: statistics.median(rank.steps) for name, rank in ranks.items()}
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
