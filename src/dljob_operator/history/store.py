"""Writes the history. Every write may be repeated: a job has one row, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Table, delete, or_, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

from dljob_operator.history import database as databases
from dljob_operator.history.database import POSTGRESQL, Database
from dljob_operator.history.migrate import migrate
from dljob_operator.history.record import Amounts, DayRecord, JobRecord
from dljob_operator.history.tables import JOB_DAYS, JOBS, PHASES

PRUNED_AT_ONCE = 1000
"""Rows of a transaction, so that no other write waits for long."""


class Store:
    """Writes to a database. All methods raise SQLAlchemyError, and HistoryError for what an administrator must mend."""

    def __init__(self, database: Database) -> None:
        self._engine = databases.connect(database)
        self._insert: Any = postgresql.insert if self._engine.dialect.name == POSTGRESQL else sqlite.insert

    def migrate(self) -> str:
        """Bring the tables to the newest revision, and return it."""
        return migrate(self._engine)

    def save(self, records: Iterable[JobRecord]) -> None:
        """Write the records in one transaction. A row that is newer than the record of its job stays."""
        statement = self._insert(JOBS)
        given = statement.excluded
        upsert = statement.on_conflict_do_update(
            index_elements=["uid"],
            set_={column.name: given[column.name] for column in JOBS.columns if not column.primary_key},
            # a cluster that was restored from a copy counts its versions from an earlier one again
            where=or_(given.version >= JOBS.c.version, given.ended > JOBS.c.ended),
        )
        self._write(upsert, [job_row(one) for one in records])

    def save_days(self, records: Iterable[DayRecord]) -> None:
        """Write the rows of days in one transaction; of two looks on a day the later one counts."""
        statement = self._insert(JOB_DAYS)
        upsert = statement.on_conflict_do_update(
            index_elements=["uid", "day"],
            set_={
                column.name: statement.excluded[column.name] for column in JOB_DAYS.columns if not column.primary_key
            },
        )
        self._write(upsert, [day_row(one) for one in records])

    def prune(self, older_than: datetime, may_go_on: Callable[[], bool] = lambda: True) -> int:
        """Delete the jobs that ended before a time, and the days before it; return how many rows those were."""
        deleted = self._prune(JOBS, JOBS.c.ended, older_than, may_go_on)
        return deleted + self._prune(JOB_DAYS, JOB_DAYS.c.day, older_than, may_go_on)

    def close(self) -> None:
        """Close the connections; the next write opens new ones."""
        self._engine.dispose()

    def _write(self, statement: Any, rows: Sequence[dict[str, Any]]) -> None:
        if not rows:
            return
        # all writers in the same order: none waits for a row of another that waits for one of its own
        ordered = sorted(rows, key=lambda row: (row["uid"], str(row.get("day", ""))))
        with self._engine.begin() as connection:
            connection.execute(statement, ordered)

    def _prune(self, table: Table, column: Any, older_than: datetime, may_go_on: Callable[[], bool]) -> int:
        keys = list(table.primary_key.columns)
        old = select(*keys).where(column < older_than).order_by(column).limit(PRUNED_AT_ONCE)
        statement = delete(table).where(tuple_(*keys).in_(old))
        total = 0
        while may_go_on():
            with self._engine.begin() as connection:
                deleted = connection.execute(statement).rowcount
            total += deleted
            if deleted < PRUNED_AT_ONCE:
                break
        return total


def job_row(record: JobRecord) -> dict[str, Any]:
    """The columns of `JOBS`."""
    plain = (
        *("created", "started", "ended", "result", "reason", "message", "replicas", "restarts", "preemptions"),
        *("usage", "progress_percent", "log_link", "version"),
    )
    return {
        **asdict(record.identity),
        **{name: getattr(record, name) for name in plain},
        **{f"{phase}_seconds": record.seconds.get(phase, 0.0) for phase in PHASES},
        **_amounts(record.amounts),
    }


def day_row(record: DayRecord) -> dict[str, Any]:
    """The columns of `JOB_DAYS`."""
    resources = dict(record.amounts.resources)
    return {**asdict(record.identity), "day": record.day, **_amounts(record.amounts), "resources": resources}


def _amounts(amounts: Amounts) -> dict[str, float]:
    return {
        "gpu_seconds": amounts.gpu_seconds,
        "cpu_core_seconds": amounts.cpu_core_seconds,
        "memory_gib_seconds": amounts.memory_gib_seconds,
    }
