"""The metrics of the progress that jobs report: at most 1,000 jobs, those with the newest reports.

| metric | labels |
| --- | --- |
| `dljob_job_progress_percent` | namespace, kind, job_name |
| `dljob_job_progress_remaining_seconds` | namespace, kind, job_name |
| `dljob_job_progress_age_seconds` | namespace, kind, job_name: since the last report |

A job that has ended has none any more.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dljob_operator.engine.progress.board import ProgressBoard

_MOST = 1000
_LABELS = ("namespace", "kind", "job_name")


class ProgressMetrics(Collector):
    """Computed at each scrape. ``now`` is the clock."""

    def __init__(self, board: ProgressBoard, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._board = board
        self._now = now

    def describe(self) -> Iterator[Metric]:
        """Return nothing, because otherwise registering would call `collect`."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        percent = GaugeMetricFamily("dljob_job_progress_percent", "Progress that a job reports", labels=_LABELS)
        remaining = GaugeMetricFamily("dljob_job_progress_remaining_seconds", "Time left of a job", labels=_LABELS)
        age = GaugeMetricFamily("dljob_job_progress_age_seconds", "Time since the last report of a job", labels=_LABELS)
        now = self._now()
        for one in heapq.nlargest(_MOST, self._board.shown(), key=lambda shown: shown.at):
            labels = (one.namespace, one.kind, one.name)
            if one.percent is not None:
                percent.add_metric(labels, one.percent)
            if one.remaining is not None:
                remaining.add_metric(labels, one.remaining)
            age.add_metric(labels, max(0.0, (now - one.at).total_seconds()))
        yield from (percent, remaining, age)
