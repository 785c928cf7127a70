"""How fast the history answers with 1,000,000 jobs, beside SQL by hand: ``python -m devtools.lab.history_queries``.

Both read the same tables in the same process, in turn, so that the machine's load counts for both. The SQL by hand goes
through psycopg and sqlite3 and makes the same plain rows. For each query it prints the medians, and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row
from sqlalchemy import text

from devtools.testbed.base.settings import cache_dir_from
from devtools.testbed.offline.postgresql import PostgreSQL, programs
from dljob_operator.history.database import Database, connect
from dljob_operator.history.queries import Filter, History
from dljob_operator.history.store import Store

ROWS = 1_000_000
GOAL = 2.0
"""The greatest ratio."""
ROUNDS = 15
_YEAR, _MONTH = 2026, 6
_SECONDS = 365 * 86_400
_USAGE = {
    "asOf": "2026-06-01T00:00:00Z",
    "seconds": {"queued": 60, "starting": 40, "running": 3500},
    "resourceSeconds": {"cpu": 28000, "memory": 112000, "nvidia.com/gpu": 3500},
    "interruptions": [{"cause": "Startup", "count": 1, "seconds": 40, "resourceSeconds": {"cpu": 320}}],
}
_BEGIN, _END = datetime(_YEAR, _MONTH, 1, tzinfo=UTC), datetime(_YEAR, _MONTH + 1, 1, tzinfo=UTC)
_NEWEST = "SELECT * FROM jobs {} ORDER BY ended DESC, uid DESC LIMIT 50"
_REPORT = """
WITH ended AS (
    SELECT namespace, user_name, count(*) AS jobs, sum(CASE WHEN result = 'Succeeded' THEN 1 ELSE 0 END) AS succeeded,
        sum(CASE WHEN result = 'Failed' THEN 1 ELSE 0 END) AS failed, sum(restarts) AS restarts,
        sum(preemptions) AS preemptions, sum(gpu_seconds) AS gpu, sum(cpu_core_seconds) AS cpu,
        sum(memory_gib_seconds) AS memory
    FROM jobs WHERE ended >= {0} AND ended < {1} GROUP BY namespace, user_name
), earlier AS (
    SELECT uid, max(gpu_seconds) AS gpu, max(cpu_core_seconds) AS cpu, max(memory_gib_seconds) AS memory
    FROM job_days WHERE day < {0} GROUP BY uid
), within AS (
    SELECT uid, max(namespace) AS namespace, max(user_name) AS user_name, max(gpu_seconds) AS gpu,
        max(cpu_core_seconds) AS cpu, max(memory_gib_seconds) AS memory
    FROM job_days WHERE day >= {0} AND day < {1} GROUP BY uid
), parts AS (
    SELECT * FROM ended
    UNION ALL
    SELECT jobs.namespace, jobs.user_name, 0, 0, 0, 0, 0, -earlier.gpu, -earlier.cpu, -earlier.memory
    FROM jobs JOIN earlier ON earlier.uid = jobs.uid WHERE jobs.ended >= {0} AND jobs.ended < {1}
    UNION ALL
    SELECT within.namespace, within.user_name, 0, 0, 0, 0, 0, within.gpu - coalesce(earlier.gpu, 0),
        within.cpu - coalesce(earlier.cpu, 0), within.memory - coalesce(earlier.memory, 0)
    FROM within LEFT JOIN earlier ON earlier.uid = within.uid
        LEFT JOIN jobs ON jobs.uid = within.uid AND jobs.ended < {1}
    WHERE jobs.uid IS NULL
)
SELECT namespace, user_name, sum(jobs) AS jobs, sum(succeeded) AS succeeded, sum(failed) AS failed,
    sum(restarts) AS restarts, sum(preemptions) AS preemptions, sum(gpu) AS gpu, sum(cpu) AS cpu, sum(memory) AS memory
FROM parts GROUP BY namespace, user_name
"""

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Measured:
    """The medians of a query, in seconds."""

    database: str
    query: str
    bare: float
    ours: float

    @property
    def ratio(self) -> float:
        return self.ours / self.bare

    def __str__(self) -> str:
        times = f"{self.bare * 1000:9.2f} ms by hand {self.ours * 1000:9.2f} ms by the history"
        return f"{self.database:10} {self.query:22} {times}   ratio {self.ratio:.2f}"


def fill(url: str, rows: int) -> None:
    """Write ``rows`` jobs of a year, which also end in its months evenly, and each hundredth's days."""
    store = Store(Database(url))
    store.migrate()
    store.close()
    engine = connect(Database(url))
    is_postgresql = engine.dialect.name == "postgresql"
    series = (
        f"SELECT i FROM generate_series(0, {rows - 1}) AS i"
        if is_postgresql
        else f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {rows - 1}) SELECT i FROM n"
    )
    as_json = "CAST(:usage AS jsonb)" if is_postgresql else ":usage"
    names = (
        "'', 'team-' || (CAST(i AS bigint) * 7919 % 50), 'PyTorchJob', 'kubeflow.org/v1', 'job-' || i, "
        "'user-' || (CAST(i AS bigint) * 104729 % 500), ''"
    )
    numbers = "i % 16 + 1, i % 3, i % 2, 60, 40, 3500, 0, 0, 3500 + i % 7, 28000, 112000"
    step = _SECONDS / rows
    jobs = (
        f"INSERT INTO jobs SELECT 'uid-' || i, {names}, {_time('i', step, -3600, is_postgresql)}, "
        f"{_time('i', step, -3540, is_postgresql)}, {_time('i', step, 0, is_postgresql)}, "
        "CASE WHEN i % 10 = 0 THEN 'Failed' ELSE 'Succeeded' END, 'JobEnded', 'a message of the usual length', "
        f"{numbers}, {as_json}, 100, '', i FROM ({series}) AS numbers"
    )
    days = (
        f"INSERT INTO job_days SELECT 'uid-' || i, {_midnight('i', step, is_postgresql)}, {names}, 100, 200, 300, "
        f"{'CAST(:usage AS jsonb)' if is_postgresql else ':usage'} FROM ({series}) AS numbers WHERE i % 100 = 0"
    )
    with engine.begin() as connection:
        connection.execute(text(jobs), {"usage": json.dumps(_USAGE)})
        connection.execute(text(days), {"usage": json.dumps(_USAGE["resourceSeconds"])})
    with engine.begin() as connection:
        connection.execute(text("ANALYZE"))
    engine.dispose()


def _time(number: str, step: float, offset: int, is_postgresql: bool) -> str:
    """The time of a row, in the form in which the database keeps it."""
    seconds = f"{number} * {step!r} + {offset}"
    if is_postgresql:
        return f"TIMESTAMPTZ '{_YEAR}-01-01 00:00:00+00' + ({seconds}) * INTERVAL '1 second'"
    return f"strftime('%Y-%m-%d %H:%M:%f000', '{_YEAR}-01-01', ({seconds}) || ' seconds')"


def _midnight(number: str, step: float, is_postgresql: bool) -> str:
    if is_postgresql:
        return f"date_trunc('day', {_time(number, step, 0, True)}, 'UTC')"
    return f"strftime('%Y-%m-%d 00:00:00.000000', '{_YEAR}-01-01', ({number} * {step!r}) || ' seconds')"


def measure(url: str, by_hand: Callable[[str, Sequence[Any]], Rows], mark: str) -> Iterator[Measured]:
    """Ask each query in turn by hand and by the history. Raises AssertionError where the answers differ."""
    history = History(url)
    name = url.partition(":")[0].partition("+")[0]
    begin, end = (_BEGIN, _END) if mark == "%s" else (_text(_BEGIN), _text(_END))
    report = _REPORT.format("%(begin)s", "%(end)s") if mark == "%s" else _REPORT.format(":begin", ":end")
    given: Any = {"begin": begin, "end": end}
    queries: list[tuple[str, Callable[[], Rows], Callable[[], Any]]] = [
        ("newest 50", lambda: by_hand(_NEWEST.format(""), ()), lambda: history.newest(50)),
        (
            "newest 50 of a team",
            lambda: by_hand(_NEWEST.format(f"WHERE namespace = {mark}"), ("team-7",)),
            lambda: history.newest(50, Filter(namespace="team-7")),
        ),
        (
            "report of a month",
            lambda: by_hand(report, given),
            lambda: history.month(_YEAR, _MONTH, ["namespace", "user"]),
        ),
    ]
    for query, bare, ours in queries:
        assert len(bare()) == len(ours()) > 0, query
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            for ask, found in zip((bare, ours), times, strict=True):
                begun = time.perf_counter()
                ask()
                found.append(time.perf_counter() - begun)
        yield Measured(name, query, *map(statistics.median, times))
    _check_report(by_hand(report, given), history)
    history.close()


def _check_report(rows: Rows, history: History) -> None:
    """Both say the same."""
    ours = {
        row.group: (row.jobs, row.failed, round(row.gpu_seconds))
        for row in history.month(_YEAR, _MONTH, ["namespace", "user"])
    }
    bare = {(row["namespace"], row["user_name"]): (row["jobs"], row["failed"], round(row["gpu"])) for row in rows}
    assert ours == bare


def _text(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M:%S.%f")


@contextmanager
def sqlite_by_hand(path: Path) -> Iterator[Callable[[str, Sequence[Any]], Rows]]:
    """Asks through the module of Python."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    connection.row_factory = sqlite3.Row

    def ask(statement: str, values: Sequence[Any]) -> Rows:
        return [_read(dict(row)) for row in connection.execute(statement, values)]

    try:
        yield ask
    finally:
        connection.close()


def _read(row: dict[str, Any]) -> dict[str, Any]:
    """With times and JSON as Python has them, as psycopg makes them."""
    for name in ("created", "started", "ended"):
        if name in row:
            row[name] = datetime.fromisoformat(row[name]).replace(tzinfo=UTC)
    if "usage" in row:
        row["usage"] = json.loads(row["usage"])
    return row


@contextmanager
def postgresql_by_hand(server: PostgreSQL) -> Iterator[Callable[[str, Sequence[Any]], Rows]]:
    """Asks through psycopg."""
    url = server.url.replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True, row_factory=dict_row, prepare_threshold=None) as connection:

        def ask(statement: Any, values: Sequence[Any]) -> Rows:
            return connection.execute(statement, values or None).fetchall()

        yield ask


def all_measured(rows: int = ROWS) -> Iterator[Measured]:
    """Fill both databases in a temporary folder, and measure. Raises ClusterError where PostgreSQL cannot be had."""
    with tempfile.TemporaryDirectory(prefix="dljob-history-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        path = folder / "history.db"
        fill(f"sqlite:///{path}", rows)
        with sqlite_by_hand(path) as ask:
            yield from measure(f"sqlite:///{path}", ask, "?")
        server = PostgreSQL(programs(cache_dir_from(os.environ)), folder / "server")
        try:
            server.create()
            server.start()
            fill(server.url, rows)
            with postgresql_by_hand(server) as ask:
                yield from measure(server.url, ask, "%s")
        finally:
            server.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="history_queries", description="The history beside SQL by hand.")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"(default: {ROWS})")
    given = parser.parse_args(arguments)
    slow = 0
    for one in all_measured(given.rows):
        print(one, flush=True)
        slow += one.ratio > GOAL
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
