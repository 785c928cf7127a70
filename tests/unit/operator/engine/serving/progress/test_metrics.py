"""The metrics of progress, and their bound."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from dljob_operator.engine.progress.board import ProgressBoard
from dljob_operator.engine.progress.report import Report
from dljob_operator.engine.progress.reporter import Reporter
from dljob_operator.engine.serving.progress.metrics import ProgressMetrics

BEGAN = datetime(2026, 11, 30, 10, 0, 0, tzinfo=UTC)


def shown(board: ProgressBoard, now: datetime) -> list[str]:
    registry = CollectorRegistry()
    registry.register(ProgressMetrics(board, lambda: now))
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def reporter(job: int) -> Reporter:
    return Reporter(str(job), "team", "TFJob", f"job-{job}", "p", "worker-0", "n", is_first=True)


def test_a_job_and_its_end() -> None:
    board = ProgressBoard(lambda: BEGAN)
    board.report(reporter(1), Report(45, 90))
    board.report(reporter(2), Report())
    labels = 'job_name="job-1",kind="TFJob",namespace="team"'
    assert shown(board, BEGAN + timedelta(seconds=7)) == [
        f"dljob_job_progress_percent{{{labels}}} 45.0",
        f"dljob_job_progress_remaining_seconds{{{labels}}} 90.0",
        f"dljob_job_progress_age_seconds{{{labels}}} 7.0",
        f"dljob_job_progress_age_seconds{{{labels.replace('job-1', 'job-2')}}} 7.0",
    ]
    board.discard("1")
    board.discard("2")
    assert shown(board, BEGAN) == []


def test_the_jobs_with_the_newest_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dljob_operator.engine.serving.progress.metrics._MOST", 3)
    times = iter(BEGAN + timedelta(seconds=one) for one in (5, 1, 4, 2, 3))
    board = ProgressBoard(lambda: next(times))
    for job in range(5):
        board.report(reporter(job), Report(job))
    percents = [line for line in shown(board, BEGAN) if "percent" in line]
    assert [line.split()[-1] for line in percents] == ["0.0", "2.0", "4.0"]
