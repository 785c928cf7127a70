"""Samples of a run, and their comparison at its begin and its end. Pure."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from devtools.lab.bench.measures import percentile
from devtools.lab.soak.mix import Life
from devtools.lab.soak.progress import Done
from devtools.testbed.usage import Use

WINDOW = 1000
"""Jobs after which the operator is warm, and jobs of each of the two windows that are compared."""
ALONE = 300
"""Of fewer jobs that run one by one the medians differ by some per cent from run to run."""
SECONDS = "s"
"""The unit of the latencies."""
LIMIT = 0.05
TAIL_LIMIT = 0.5
"""For the p99 of a latency, the tenth highest of 1,000: its ratio has differed from that of the p50 by up to 30 %."""
_DRAWN = 400
"""Samples for the interval of a ratio."""
_MIB = 2**20

Pair = tuple[Sequence[Done], Sequence[Done]]
"""The jobs of a young process of the operator, and those of the aged one."""


@dataclass(frozen=True)
class Sample:
    """The operator after ``jobs`` jobs and ``seconds`` seconds. Bytes."""

    seconds: float
    jobs: int
    pss: int
    rss: tuple[int, ...]
    """Of each process, the first one first."""
    descriptors: int
    processes: int
    threads: int
    queue: int
    load: float
    """The load average of the last minute, of the whole machine."""


def sample(seconds: float, jobs: int, use: Use, queue: float, load: float) -> Sample:
    return Sample(
        seconds, jobs, use.pss, tuple(one.rss for one in use.processes), use.descriptors, len(use.processes),
        use.threads, int(queue), load,
    )  # fmt: skip


@dataclass(frozen=True)
class Row:
    """The value of one quantity after the first jobs and at the end. It may grow by the share ``limit``; None for a
    circumstance of the run."""

    name: str
    first: float
    last: float
    unit: str = ""
    limit: float | None = LIMIT
    interval: tuple[float, float] | None = None
    """In which the ratio is with 95 %, by how much the jobs differ from each other."""

    @property
    def ratio(self) -> float:
        if self.first:
            return self.last / self.first
        return math.inf if self.last else 1.0

    @property
    def has_grown(self) -> bool:
        """By more than its limit."""
        return self.limit is not None and self.ratio > 1 + self.limit


def alone_row(first: Sequence[Done], last: Sequence[Done]) -> Row:
    """Jobs that ran one by one after the first window and at the end."""
    return _latency(_ALONE, first, last)


def in_turn_rows(many: Pair, single: Pair) -> list[Row]:
    """The latencies of both processes, which ran ``many`` jobs at a time and ``single`` ones in turn."""
    measured = [*((latency, many) for latency in _LATENCIES), (_ALONE, single)]
    return [replace(_latency(latency, *pair), interval=_interval(latency, *pair)) for latency, pair in measured]


def seconds(pair: Pair) -> list[list[tuple[float | None, float | None]]]:
    """Of each job of both processes the time of its first pod and of its end, for later analysis."""
    return [[(one.first_pod, one.ended) for one in done] for done in pair]


def alone(jobs: int) -> int:
    """Jobs that run one by one, each time, in a run of ``jobs`` jobs."""
    return min(ALONE, window(jobs))


def window(jobs: int) -> int:
    """Jobs of a window in a run of ``jobs`` jobs: a short run has shorter ones."""
    return max(1, min(WINDOW, jobs // 4))


def rows(samples: Sequence[Sample], done: Sequence[Done]) -> list[Row]:
    """The medians of the windows after the first jobs and at the end, and the latencies of the jobs in them.

    Raises ValueError where a window has no sample.
    """
    size = window(len(done))
    first = [one for one in samples if size <= one.jobs < 2 * size]
    last = [one for one in samples if one.jobs >= len(done) - size]
    if not first or not last:
        raise ValueError(f"no sample in one of the windows of {size} jobs: run more jobs, or sample more often")

    def median(name: str, scale: float = 1.0) -> tuple[float, float]:
        values = ([getattr(one, name) / scale for one in several] for several in (first, last))
        early, late = (statistics.median(several) for several in values)
        return early, late

    def main(several: Sequence[Sample]) -> float:
        return statistics.median(one.rss[0] / _MIB for one in several if one.rss)

    found = [
        Row("memory of all processes (PSS)", *median("pss", _MIB), "MiB"),
        Row("memory of the first process (RSS)", main(first), main(last), "MiB"),
        Row("file descriptors", *median("descriptors")),
        Row("processes", *median("processes")),
        Row("threads", *median("threads")),
        Row("jobs in the queue", *median("queue"), limit=None),
        Row("load average", *median("load"), limit=None),
    ]
    early, late = done[size : 2 * size], done[-size:]
    return [*found, *(_latency(latency, early, late) for latency in _LATENCIES)]


def _pods(done: Sequence[Done], share: float) -> float:
    return _percentile([one.first_pod for one in done], share)


def _ends(done: Sequence[Done], share: float) -> float:
    """Of the jobs that succeed at once: the others wait for a restart, or for the harness."""
    return _percentile([one.ended for one in done if one.life is Life.SUCCESS], share)


def _percentile(values: Sequence[float | None], share: float) -> float:
    known = [value for value in values if value is not None]
    return percentile(known, share) if known else 0.0


@dataclass(frozen=True)
class _Latency:
    """``of`` is its value for these jobs."""

    name: str
    of: Callable[[Sequence[Done]], float]
    limit: float = LIMIT


_LATENCIES = (
    _Latency("first pod, p50", lambda done: _pods(done, 0.5)),
    _Latency("Succeeded, p50", lambda done: _ends(done, 0.5)),
    _Latency("first pod, p99", lambda done: _pods(done, 0.99), TAIL_LIMIT),
    _Latency("Succeeded, p99", lambda done: _ends(done, 0.99), TAIL_LIMIT),
)
_ALONE = _Latency("first pod of a job alone, p50", lambda done: _pods(done, 0.5))


def _latency(latency: _Latency, first: Sequence[Done], last: Sequence[Done]) -> Row:
    return Row(latency.name, latency.of(first), latency.of(last), SECONDS, latency.limit)


def _interval(latency: _Latency, first: Sequence[Done], last: Sequence[Done]) -> tuple[float, float]:
    """The 95 % interval of the ratio: its percentiles over as many samples, drawn from the jobs with repetition."""
    chance = random.Random(0)
    drawn = (
        _latency(latency, chance.choices(first, k=len(first)), chance.choices(last, k=len(last))).ratio
        for _ in range(_DRAWN)
    )
    ratios = sorted(drawn)
    return ratios[int(0.025 * _DRAWN)], ratios[int(0.975 * _DRAWN)]


def series(samples: Sequence[Sample], done: Sequence[Done]) -> dict[str, Any]:
    """What the plot shows: for each sample the number of jobs and the quantities, with latencies of the jobs before."""
    step = max(1, len(done) // 100)
    marks = range(step, len(done) + 1, step)
    return {
        "jobs": [one.jobs for one in samples],
        "pss": [one.pss / _MIB for one in samples],
        "main": [(one.rss[0] if one.rss else 0) / _MIB for one in samples],
        "descriptors": [one.descriptors for one in samples],
        "threads": [one.threads for one in samples],
        "processes": [one.processes for one in samples],
        "load": [one.load for one in samples],
        "queue": [one.queue for one in samples],
        "marks": list(marks),
        "first_pod": [1000 * _pods(done[mark - step : mark], 0.5) for mark in marks],
        "first_pod_p99": [1000 * _pods(done[mark - step : mark], 0.99) for mark in marks],
        "ended": [1000 * _ends(done[mark - step : mark], 0.5) for mark in marks],
    }
