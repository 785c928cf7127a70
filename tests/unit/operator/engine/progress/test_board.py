"""The last reports: what the status gets, and when it is due."""

from __future__ import annotations

from dataclasses import replace
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

    def monotonic(self) -> float:
        return (self.now - BEGAN).total_seconds()


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
    board = ProgressBoard(Clock(), lambda: 0.0)
    none = {"heard": {"listening": 0.0, "age": None, "replicas": 0, "oldest": []}}
    assert list(board.of("1")) == [none]
    board.report(reporter(), Report(10, 90, (("loss", "0.5"),)))
    board.report(reporter(), Report(20, 80))
    assert list(board.of("1")) == [
        {
            "trainerStatus": {
                "progressPercentage": 20,
                "estimatedRemainingSeconds": 80,
                "lastUpdatedTime": "2026-11-30T10:00:00Z",
            },
            "heard": {"listening": 0.0, "age": 0.0, "replicas": 1, "oldest": [["worker-0", 0.0, "20%"]]},
        }
    ]
    assert list(board.of("2")) == [none]


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
    assert len(str(found)) < 1000
    assert (found["heard"]["replicas"], len(found["heard"]["oldest"])) == (1000, 8)


def test_ranks_alone_are_no_progress_of_the_job() -> None:
    board = ProgressBoard(Clock())
    assert not board.report(reporter("worker-1", is_first=False), Report(50, step_seconds=1.0))
    (found,) = board.of("1")
    assert set(found) == {"heard"}
    assert list(board.shown()) == []


def test_a_deleted_job_is_forgotten() -> None:
    board = ProgressBoard(Clock())
    board.report(reporter(), Report(1))
    board.discard("1")
    board.discard("1")
    (found,) = board.of("1")
    assert (set(found), found["heard"]["age"]) == ({"heard"}, None)
    assert list(board.shown()) == []


def heard_of(board: ProgressBoard, job: str = "1") -> Any:
    (found,) = board.of(job)
    return found["heard"]


def test_what_each_rank_has_said_last_the_most_silent_first() -> None:
    clock = Clock()
    board = ProgressBoard(clock, clock.monotonic)
    metrics = (("loss", "0.5"), ("step", "7"), ("lr", "0.1"), ("more", "x" * 60))
    for index in (1, 0, 2):
        board.report(reporter(f"worker-{index}", is_first=index == 0), Report(40 + index, metrics=metrics))
        clock.pass_(10)
    board.report(reporter("worker-1", is_first=False), Report(metrics=(("text", "y" * 64), ("more", "z" * 64))))
    heard = heard_of(board)
    assert (heard["age"], heard["replicas"]) == (0.0, 3)
    assert heard["oldest"][:2] == [
        ["worker-0", 20.0, "40%, loss 0.5, step 7, lr 0.1"],
        ["worker-2", 10.0, "42%, loss 0.5, step 7, lr 0.1"],
    ]
    assert len(heard["oldest"][2][2]) == 80


def test_silence_says_nothing_of_a_time_in_which_reports_may_have_been_lost() -> None:
    clock = Clock()
    board = ProgressBoard(clock, clock.monotonic)
    board.report(replace(reporter(), address="10.0.0.1"), Report(1))
    board.report(replace(reporter(job="2"), address="10.0.0.2"), Report(1))
    clock.pass_(100)
    assert heard_of(board)["listening"] == 100
    board.lost("10.0.0.1")
    clock.pass_(7)
    assert [heard_of(board, job)["listening"] for job in ("1", "2", "new")] == [7, 107, 7]
    board.lost()
    clock.pass_(1)
    assert [heard_of(board, job)["listening"] for job in ("1", "2", "new")] == [1, 1, 1]


def test_addresses_that_are_forgotten_may_be_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dljob_operator.engine.progress.board._MOST_ADDRESSES", 2)
    clock = Clock()
    board = ProgressBoard(clock, clock.monotonic)
    board.report(replace(reporter(), address="elsewhere"), Report(1))
    for address in ("a", "b", "c"):
        clock.pass_(10)
        board.lost(address)
    assert heard_of(board)["listening"] == 20


def test_a_clock_that_is_set_makes_nothing_silent() -> None:
    clock, seconds = Clock(), [0.0]
    board = ProgressBoard(clock, lambda: seconds[0])
    board.report(reporter(), Report(1))
    clock.pass_(86_400)
    assert (heard_of(board)["age"], heard_of(board)["listening"]) == (0.0, 0.0)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_job_that_has_stalled_is_due_with_its_next_report(is_first: bool) -> None:
    clock = Clock()
    board = ProgressBoard(clock)
    if is_first:
        assert board.report(reporter(), Report(1))
    clock.pass_(10)
    again = replace(reporter("worker-1", is_first=is_first, written=BEGAN), is_stalled=True)
    assert board.report(again, Report(1))
    clock.pass_(4)
    assert not board.report(again, Report(1)), "the status may not be written yet"
    clock.pass_(1)
    assert board.report(again, Report(1))
