"""The last reports: what the status gets, and when it is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dljob_operator.engine.progress.board import ProgressBoard
from dljob_operator.engine.progress.report import Report
from dljob_operator.engine.progress.reporter import Reporter

BEGAN = datetime(2026, 11, 30, 10, 0, 0, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def reporter(
    replica: str = "worker-0",
    job: str = "1",
    *,
    is_first: bool = True,
    pod: str = "",
    node: str = "n",
    written: datetime | None = None,
) -> Reporter:
    return Reporter(job, "team", "PyTorchJob", f"job-{job}", pod or f"p-{replica}", replica, node, is_first, written)


def status_of(board: ProgressBoard, job: str = "1") -> Any:
    (found,) = board.of(job)
    return found["trainerStatus"]


def test_the_status_has_the_last_report() -> None:
    board = ProgressBoard(Clock())
    assert list(board.of("1")) == []
    board.report(reporter(), Report(10, 90, (("loss", "0.5"),)))
    board.report(reporter(), Report(20, 80))
    assert list(board.of("1")) == [
        {
            "trainerStatus": {
                "progressPercentage": 20,
                "estimatedRemainingSeconds": 80,
                "lastUpdatedTime": "2026-11-30T10:00:00Z",
            }
        }
    ]
    assert list(board.of("2")) == []


def test_a_report_without_numbers_is_one_too() -> None:
    board = ProgressBoard(Clock())
    board.report(reporter(), Report(metrics=(("loss", "0.5"),)))
    assert status_of(board) == {
        "metrics": [{"name": "loss", "value": "0.5"}],
        "lastUpdatedTime": "2026-11-30T10:00:00Z",
    }


def test_the_status_is_due_once_a_minute() -> None:
    clock = Clock()
    board = ProgressBoard(clock)
    due = []
    for second in range(0, 181, 5):
        if board.report(reporter(), Report(second // 5)):
            due.append(second)
        clock.pass_(5)
    assert due == [0, 60, 120, 180]


def test_a_new_process_waits_for_what_the_last_one_has_written() -> None:
    clock = Clock()
    board = ProgressBoard(clock)
    assert not board.report(reporter(written=BEGAN - timedelta(seconds=59)), Report(1))
    assert board.report(reporter(written=BEGAN - timedelta(seconds=60)), Report(2))


def test_a_clock_that_went_back_stops_no_report() -> None:
    assert ProgressBoard(Clock()).report(reporter(written=BEGAN + timedelta(days=365)), Report(1))


@pytest.mark.parametrize("first", [0, 20], ids=["from a checkpoint", "from the beginning"])
def test_the_rate_gives_the_time_left(first: int) -> None:
    """transformers reports 0% first, also when it goes on at 40%."""
    clock = Clock()
    board = ProgressBoard(clock)
    board.report(reporter(), Report(first))
    clock.pass_(1)
    board.report(reporter(), Report(40))
    assert "estimatedRemainingSeconds" not in status_of(board), "nothing is known of the rate"
    clock.pass_(30)
    board.report(reporter(), Report(60))
    assert status_of(board)["estimatedRemainingSeconds"] == 60
    board.report(reporter(), Report(61, 7))
    assert status_of(board)["estimatedRemainingSeconds"] == 7, "what the program says counts"


def test_after_a_restart_the_rate_is_counted_anew() -> None:
    clock = Clock()
    board = ProgressBoard(clock)
    for percent in (0, 1, 80):
        board.report(reporter(), Report(percent))
        clock.pass_(1000)
    for percent in (60, 61):
        board.report(reporter(pod="again"), Report(percent))
    assert "estimatedRemainingSeconds" not in status_of(board)
    clock.pass_(10)
    board.report(reporter(pod="again"), Report(71))
    assert status_of(board)["estimatedRemainingSeconds"] == 29


def test_the_slowest_rank_is_named_with_its_node() -> None:
    board = ProgressBoard(Clock())
    for index in range(5):
        for _ in range(3):
            seconds = 2.5 if index == 3 else 1.0 + index / 10
            rank = reporter(f"worker-{index}", is_first=index == 0, node=f"n{index}")
            board.report(rank, Report(50 if index == 0 else 99, step_seconds=seconds))
    (found,) = board.of("1")
    assert found["trainerStatus"]["progressPercentage"] == 50, "the other ranks say nothing of the job"
    assert found["rankStatus"] == {
        "reporting": 5,
        "medianStepSeconds": 1.2,
        "slowest": {"replica": "worker-3", "pod": "p-worker-3", "node": "n3", "stepSeconds": 2.5},
    }


def test_one_slow_step_makes_no_straggler_and_a_new_pod_begins_anew() -> None:
    board = ProgressBoard(Clock())
    for seconds in (1.0, 1.0, 60.0, 1.0, 1.0):
        board.report(reporter(), Report(1, step_seconds=seconds))
    (found,) = board.of("1")
    assert found["rankStatus"]["slowest"]["stepSeconds"] == 1.0
    board.report(reporter(pod="new"), Report(1, step_seconds=9.0))
    (found,) = board.of("1")
    assert found["rankStatus"]["slowest"] == {"replica": "worker-0", "pod": "new", "node": "n", "stepSeconds": 9.0}


def test_a_thousand_ranks_take_little_and_more_than_the_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dljob_operator.engine.progress.board._MOST_RANKS", 1000)
    board = ProgressBoard(Clock())
    for index in range(1001):
        board.report(reporter(f"worker-{index}", is_first=index == 0), Report(1, step_seconds=1.0 + index))
    (found,) = board.of("1")
    assert found["rankStatus"]["reporting"] == 1000
    assert found["rankStatus"]["slowest"]["replica"] == "worker-999"
    assert len(str(found)) < 500


def test_ranks_alone_are_no_progress_of_the_job() -> None:
    board = ProgressBoard(Clock())
    assert not board.report(reporter("worker-1", is_first=False), Report(50, step_seconds=1.0))
    assert list(board.of("1")) == []
    assert list(board.shown()) == []


def test_a_deleted_job_is_forgotten() -> None:
    board = ProgressBoard(Clock())
    board.report(reporter(), Report(1))
    board.discard("1")
    board.discard("1")
    assert list(board.of("1")) == []
    assert list(board.shown()) == []
