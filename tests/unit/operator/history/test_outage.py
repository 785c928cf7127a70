"""2,000 jobs end while PostgreSQL fails and the operator dies: its successor writes each of them once."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from devtools.testbed.offline.postgresql import PostgreSQL
from prometheus_client import CollectorRegistry
from support.history import NOW, ended, job
from support.polling import until

from dljob_operator.engine.cache.predicates import Change
from dljob_operator.history.database import Database
from dljob_operator.history.record import Place
from dljob_operator.history.recorder import Pace, Recorder, Settings
from dljob_operator.history.store import Store

from .conftest import Empty

JOBS = 2_000
PACE = Pace(first_pause=0.05, longest_pause=0.2, gather=0.0, last_writes=0.1)


class Operator:
    """An operator that records in a database, and the jobs that it has seen."""

    def __init__(self, url: str) -> None:
        database = Database(url)
        self.registry = CollectorRegistry()
        settings = Settings(database, timedelta(days=365), Place())
        self.recorder = Recorder(settings, Store(database), self.registry, PACE, lambda: NOW)
        self.cache: dict[str, dict[str, Any]] = {}

    def start(self, listed: dict[str, dict[str, Any]]) -> None:
        for one in listed.values():
            self.see(one)
        self.recorder.start(lambda: list(self.cache.values()))

    def see(self, new: dict[str, Any]) -> None:
        uid = new["metadata"]["uid"]
        self.recorder.job_changed(Change(self.cache.get(uid), new))
        self.cache[uid] = new

    def delete(self, uid: str) -> None:
        self.recorder.job_changed(Change(self.cache.pop(uid), None))

    def number(self, name: str) -> float:
        return self.registry.get_sample_value(f"dljob_history_{name}") or 0.0


@pytest.fixture
def empty(postgresql: PostgreSQL) -> Empty:
    made = Empty(postgresql.url)
    made.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    return made


def rows(empty: Empty) -> list[tuple[object, ...]]:
    return empty.run("SELECT count(*), count(DISTINCT uid) FROM jobs WHERE result = 'Succeeded'")


def test_nothing_is_lost_and_nothing_is_there_twice(empty: Empty, postgresql: PostgreSQL) -> None:
    cluster = {f"uid-j{number}": job(f"j{number}") for number in range(JOBS)}
    first, second = Operator(empty.url), Operator(empty.url)
    first.start(cluster)
    is_out = threading.Event()

    def end_jobs() -> None:
        for number in range(JOBS):
            if number == JOBS // 4:
                until(lambda: first.number("rows_total") is not None and _written(first) > 100)
            if number == JOBS // 2:
                postgresql.kill()
                is_out.set()
            name = f"j{number}"
            cluster[f"uid-{name}"] = ended(name, version=number + 2)
            first.see(cluster[f"uid-{name}"])

    ends = threading.Thread(target=end_jobs)
    ends.start()
    assert is_out.wait(60)
    ends.join(60)
    until(lambda: first.number("failures_total") > 1)
    first.recorder.stop()  # it dies with its queue, since the database is out
    assert first.number("queue_jobs") > 0
    second.start(cluster)
    until(lambda: second.number("failures_total") > 1)
    postgresql.start()
    until(lambda: rows(empty) == [(JOBS, JOBS)])
    until(lambda: second.number("queue_jobs") == 0)
    assert rows(empty) == [(JOBS, JOBS)]
    assert second.number("lost_jobs_total") == 0
    second.recorder.stop()


def test_jobs_that_are_deleted_during_an_outage_are_kept_by_the_operator_that_saw_it(
    empty: Empty, postgresql: PostgreSQL
) -> None:
    operator = Operator(empty.url)
    operator.start({})
    operator.see(ended("before"))
    until(lambda: rows(empty) == [(1, 1)] if _has_tables(empty) else False)
    postgresql.kill()
    try:
        for number in range(500):
            operator.see(ended(f"j{number}"))
            operator.delete(f"uid-j{number}")
        until(lambda: operator.number("failures_total"))
    finally:
        postgresql.start()
    until(lambda: rows(empty) == [(501, 501)])
    operator.recorder.stop()


def _written(operator: Operator) -> float:
    return operator.registry.get_sample_value("dljob_history_rows_total", {"table": "jobs"}) or 0.0


def _has_tables(empty: Empty) -> bool:
    return empty.run("SELECT to_regclass('jobs') IS NOT NULL") == [(True,)]
