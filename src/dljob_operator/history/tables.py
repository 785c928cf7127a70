"""The tables of the history, for SQLite and PostgreSQL. `migrations` creates them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.dialects.postgresql import JSONB

VERSION_TABLE = "dljob_history_version"
"""Of Alembic; a database may have other tables under the control of another Alembic."""


class UtcTime(TypeDecorator[datetime]):
    """A time in UTC: PostgreSQL keeps it with its zone, and SQLite, which has no type for it, as a text that sorts."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Raises ValueError for a time without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time of the history needs a zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        found: datetime = value
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


METADATA = MetaData()
_PLAIN_JSON = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def _identity(*, is_job: bool) -> list[Column[Any]]:
    names = ("cluster", "namespace", "kind", "api_version", "name", "user_name", "queue")
    return [
        Column("uid", Text, primary_key=True),
        *([] if is_job else [Column("day", UtcTime, primary_key=True)]),
        *(Column(name, Text, nullable=False) for name in names),
    ]


_AMOUNTS = ("gpu_seconds", "cpu_core_seconds", "memory_gib_seconds")
PHASES = ("queued", "starting", "running", "restarting", "suspended")

JOBS = Table(
    "jobs",
    METADATA,
    *_identity(is_job=True),
    Column("created", UtcTime),
    Column("started", UtcTime),
    Column("ended", UtcTime, nullable=False),
    Column("result", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("replicas", Integer, nullable=False),
    Column("restarts", Integer, nullable=False),
    Column("preemptions", Integer, nullable=False),
    *(Column(f"{phase}_seconds", Double, nullable=False) for phase in PHASES),
    *(Column(name, Double, nullable=False) for name in _AMOUNTS),
    Column("usage", _PLAIN_JSON),
    Column("progress_percent", Integer),
    Column("log_link", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Index("jobs_by_end", "ended", "uid"),
    Index("jobs_by_namespace", "namespace", "ended", "uid"),
    Index("jobs_by_user", "user_name", "ended", "uid"),
)
"""A row for each job that has ended, by its UID."""

JOB_DAYS = Table(
    "job_days",
    METADATA,
    *_identity(is_job=False),
    *(Column(name, Double, nullable=False) for name in _AMOUNTS),
    Column("resources", _PLAIN_JSON, nullable=False),
    Index("job_days_by_day", "day"),
)
"""What a job that runs for long had used since its creation, at the last look on each day."""
