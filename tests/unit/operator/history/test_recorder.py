"""The thread that writes: what it notes, how it goes on after errors, and that it keeps no reconcile waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy.exc import DataError, OperationalError
from support.history import NOW, USAGE, ended, job
from support.polling import until

from dljob_operator import logs
from dljob_operator.engine.cache.predicates import Change
from dljob_operator.history import recorder as recorders
from dljob_operator.history.database import Database, HistoryError
from dljob_operator.history.pending import Pending
from dljob_operator.history.record import DayRecord, JobRecord, Place
from dljob_operator.history.recorder import Pace, Recorder, Settings

QUICK = Pace(first_pause=0.001, longest_pause=0.01, gather=0.0)
URL = "postgresql://u:geheim@db/h"


class Memory:
    """A database in memory. Each write calls `trouble`, which may raise."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobRecord] = {}
        self.days: list[DayRecord] = []
        self.pruned: list[datetime] = []
        self.batches: list[int] = []
        self.trouble: Callable[[list[Any]], None] = lambda given: None
        self.closed = 0
        self.migrations = 0

    def migrate(self) -> str:
        self.trouble([])
        self.migrations += 1
        return "1"

    def save(self, records: Iterable[JobRecord]) -> None:
        given = list(records)
        self.trouble(given)
        self.batches.append(len(given))
        self.jobs |= {one.identity.name: one for one in given}

    def save_days(self, records: Iterable[DayRecord]) -> None:
        given = list(records)
        self.trouble(given)
        self.days += given

    def prune(self, older_than: datetime, may_go_on: Callable[[], bool] = lambda: True) -> int:
        self.pruned.append(older_than)
        return 3

    def close(self) -> None:
        self.closed += 1


class Operator:
    """A recorder with the database in memory, and the jobs of a cache."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.registry = CollectorRegistry()
        self.cache: list[dict[str, Any]] = []
        self.now = NOW
        self.recorder = self.make()

    def make(self, pace: Pace = QUICK) -> Recorder:
        settings = Settings(Database(URL), timedelta(days=30), Place())
        self.registry = CollectorRegistry()
        self.recorder = Recorder(settings, self.memory, self.registry, pace, lambda: self.now)
        return self.recorder

    def start(self) -> None:
        self.recorder.start(lambda: self.cache)

    def number(self, name: str, **labels: str) -> float:
        found = self.registry.get_sample_value(f"dljob_history_{name}", labels)
        assert found is not None
        return found


@pytest.fixture
def operator() -> Iterator[Operator]:
    made = Operator()
    yield made
    made.recorder.stop()


def said(caplog: pytest.LogCaptureFixture) -> str:
    """The log lines with their fields."""
    return "\n".join(map(logs.TextFormatter().format, caplog.records))


def out(given: list[Any]) -> None:
    raise OperationalError("INSERT", {}, Exception("server closed the connection, password geheim"))


def test_what_it_notes(operator: Operator) -> None:
    note = operator.recorder.job_changed
    running = {**job("runs"), "status": {"state": "Running"}}
    note(Change(None, job("new")))
    note(Change(job("runs"), running))
    note(Change(None, ended("listed")))
    note(Change(job("a"), ended("a")))
    note(Change(running, None))
    note(Change(None, ended("old", at=NOW - timedelta(days=31), creationTimestamp="2026-01-01T00:00:00Z")))
    operator.start()
    until(lambda: len(operator.memory.jobs) == 3)
    assert {name: one.result for name, one in operator.memory.jobs.items()} == {
        "listed": "Succeeded", "a": "Succeeded", "runs": "Deleted"
    }  # fmt: skip
    assert operator.number("rows_total", table="jobs") == 3
    assert operator.number("queue_jobs") == 0
    assert operator.number("last_success_timestamp_seconds") == NOW.timestamp()


def test_a_change_after_the_end_is_written_only_if_a_row_would_change(operator: Operator) -> None:
    operator.start()
    counted = ended("a", version=3)
    counted["status"]["usage"] = USAGE
    operator.recorder.job_changed(Change(ended("a"), ended("a", version=2)))
    operator.recorder.job_changed(Change(ended("a", version=2), counted))
    until(lambda: operator.memory.jobs)
    assert (operator.memory.jobs["a"].version, operator.memory.batches) == (3, [1])


def test_an_outage_loses_nothing_and_says_so_once(operator: Operator, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    tries: list[int] = []

    def trouble(given: list[Any]) -> None:
        tries.append(len(given))
        out(given)

    operator.memory.trouble = trouble
    operator.start()
    for number in range(3):
        operator.recorder.job_changed(Change(None, ended(f"j{number}")))
    until(lambda: len(tries) > 5)
    assert operator.number("failures_total") > 3
    assert operator.number("queue_jobs") == 3
    operator.memory.trouble = lambda given: None
    until(lambda: len(operator.memory.jobs) == 3)
    until(lambda: "takes writes again" in caplog.text)
    assert caplog.text.count("cannot write the history") == 1
    assert "geheim" not in said(caplog) and "password ***" in said(caplog)
    assert operator.number("lost_jobs_total") == 0


def test_after_an_error_it_connects_anew(operator: Operator, caplog: pytest.LogCaptureFixture) -> None:
    """A server that has become a standby still answers, and refuses writes for ever."""
    caplog.set_level("INFO")
    operator.start()
    until(lambda: operator.memory.migrations == 1)

    def trouble(given: list[Any]) -> None:
        if not operator.memory.closed:
            out(given)

    operator.memory.trouble = trouble
    operator.recorder.job_changed(Change(None, ended("a")))
    until(lambda: operator.memory.jobs)
    assert (operator.memory.closed, operator.memory.migrations) == (1, 2)
    assert said(caplog).count("keeping a history of jobs") == 1


def test_a_connection_that_breaks_between_batches(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "BATCH", 10)
    rounds: list[int] = []

    def trouble(given: list[Any]) -> None:
        rounds.append(len(given))
        if len(rounds) in (3, 5):
            out(given)

    operator.memory.trouble = trouble
    for number in range(45):
        operator.recorder.job_changed(Change(None, ended(f"j{number}")))
    operator.start()
    until(lambda: len(operator.memory.jobs) == 45)


def test_a_record_that_the_database_refuses_does_not_stop_the_others(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    def trouble(given: list[Any]) -> None:
        if any(one.identity.name == "bad" for one in given):
            raise DataError("INSERT", {}, Exception("value out of range"))

    operator.memory.trouble = trouble
    for name in ("a", "bad", "b"):
        operator.recorder.job_changed(Change(None, ended(name)))
    operator.start()
    until(lambda: len(operator.memory.jobs) == 2)
    assert operator.number("lost_jobs_total") == 1
    assert "refuses a job" in caplog.text


def test_jobs_without_room_are_read_from_the_cache_again(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "Pending", lambda: Pending(most_records=5))
    monkeypatch.setattr(recorders, "BATCH", 3)
    recorder = operator.make()
    operator.cache = [ended(f"j{number}") for number in range(40)] + [job("runs")]
    operator.memory.trouble = out
    operator.start()
    for one in operator.cache:
        recorder.job_changed(Change(None, one))
    recorder.job_changed(Change(job("gone"), None))
    until(lambda: operator.number("failures_total"))
    operator.memory.trouble = lambda given: None
    until(lambda: len(operator.memory.jobs) == 41)
    assert operator.number("lost_jobs_total") == 0


def test_no_room_for_deleted_jobs_is_counted(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "Pending", lambda: Pending(most_records=5))
    recorder = operator.make()
    for number in range(7):
        recorder.job_changed(Change(ended(f"j{number}"), None))
    assert operator.number("lost_jobs_total") == 2
    assert operator.number("queue_jobs") == 5


def test_days_are_looked_at_and_old_rows_deleted(operator: Operator) -> None:
    operator.make(Pace(first_pause=0.001, longest_pause=0.01, gather=0.0, look=0.01))
    operator.cache = [{**job("long"), "status": {"state": "Running", "usage": USAGE}}, job("short"), ended("done")]
    operator.start()
    until(lambda: len(operator.memory.days) > 2)
    assert {one.identity.name for one in operator.memory.days} == {"long"}
    assert operator.memory.pruned == [NOW - timedelta(days=30)], "once a day"
    assert operator.number("pruned_rows_total") == 3
    assert operator.number("rows_total", table="job_days") >= 2


def test_a_database_that_hangs_keeps_no_reconcile_waiting(operator: Operator) -> None:
    hangs, is_reached = threading.Event(), threading.Event()

    def trouble(given: list[Any]) -> None:
        if given:
            is_reached.set()
            hangs.wait(60)

    operator.memory.trouble = trouble
    operator.start()
    operator.recorder.job_changed(Change(None, ended("first")))
    is_reached.wait(60)
    done = threading.Thread(
        target=lambda: [operator.recorder.job_changed(Change(None, ended(f"j{n}"))) for n in range(99)]
    )
    done.start()
    done.join(60)
    assert not done.is_alive()
    hangs.set()
    until(lambda: len(operator.memory.jobs) == 100)


def test_it_raises_nothing_for_a_job_that_it_cannot_read(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*given: Any, **more: Any) -> None:
        raise RecursionError

    monkeypatch.setattr(recorders, "job_record", fails)
    operator.recorder.job_changed(Change(None, ended("a")))
    assert "the history cannot read a job" in caplog.text


def test_a_database_of_a_newer_version_is_tried_again(operator: Operator, caplog: pytest.LogCaptureFixture) -> None:
    def trouble(given: list[Any]) -> None:
        raise HistoryError("a newer operator has changed it")

    operator.memory.trouble = trouble
    operator.start()
    until(lambda: "a newer operator has changed it" in said(caplog))
    operator.memory.trouble = lambda given: None
    operator.recorder.job_changed(Change(None, ended("a")))
    until(lambda: operator.memory.jobs)


def test_the_end_of_the_operator_writes_what_waits(operator: Operator) -> None:
    recorder = operator.make(Pace(gather=60.0))
    operator.start()
    recorder.job_changed(Change(None, ended("a")))
    recorder.stop()
    assert [*operator.memory.jobs] == ["a"]
    assert operator.memory.closed == 1


def test_the_end_of_the_operator_does_not_wait_for_a_database_that_is_out(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = operator.make(Pace(first_pause=0.001, longest_pause=0.01, gather=0.0, last_writes=0.05))
    operator.memory.trouble = out
    operator.start()
    recorder.job_changed(Change(None, ended("a")))
    until(lambda: operator.number("failures_total"))
    recorder.stop()
    assert "lacks jobs until the next start" in caplog.text
    assert operator.memory.closed
