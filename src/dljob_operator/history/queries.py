"""Reads the history, for `kubectl dljob history`. It needs SQLAlchemy, and a database that `migrate` has prepared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Double,
    FromClause,
    Label,
    Select,
    Subquery,
    Table,
    TableValuedAlias,
    and_,
    case,
    cast,
    func,
    literal,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy.exc import SQLAlchemyError

from dljob_operator.history.database import POSTGRESQL, Database, HistoryError, connect, explained, shown
from dljob_operator.history.tables import JOB_DAYS, JOBS

GROUPS: Mapping[str, str] = {
    "cluster": "cluster",
    "namespace": "namespace",
    "user": "user_name",
    "queue": "queue",
    "kind": "kind",
}
"""What a report may group by, and the column of each."""
_AMOUNTS = ("gpu_seconds", "cpu_core_seconds", "memory_gib_seconds")
_COUNTS = ("jobs", "succeeded", "failed", "restarts", "preemptions")
_RESOURCE, _SECONDS = "resource", "seconds"
_UNDEFINED = ("UndefinedTable", "no such table")


@dataclass(frozen=True)
class Filter:
    """Which jobs; an empty field means any."""

    cluster: str = ""
    namespace: str = ""
    user: str = ""
    kind: str = ""
    """In any case, such as tfjob."""
    result: str = ""
    since: datetime | None = None
    """Only jobs that ended at that time or later."""
    before: tuple[datetime, str] | None = None
    """Only jobs after this one in the list: the end and the UID of the last job of a page."""


@dataclass(frozen=True)
class Row:
    """A line of a report."""

    group: tuple[str, ...]
    jobs: int = 0
    """Those that ended in the month."""
    succeeded: int = 0
    failed: int = 0
    restarts: int = 0
    preemptions: int = 0
    gpu_seconds: float = 0.0
    """What pods held in the month, also those of jobs that ended later or still run."""
    cpu_core_seconds: float = 0.0
    memory_gib_seconds: float = 0.0


class History:
    """A read-only connection. All methods raise HistoryError. Close it in the end."""

    def __init__(self, url: str) -> None:
        self._database = Database(url, is_read_only=True)
        self._engine = connect(self._database)

    def newest(self, limit: int = 50, where: Filter | None = None) -> list[dict[str, Any]]:
        """Return the jobs that ended last, the newest first, each with all columns of the table."""
        return self._read(newest(limit, where or Filter()))

    def month(self, year: int, month: int, by: Sequence[str], where: Filter | None = None) -> list[Row]:
        """Return the report of a month (UTC), the most GPU seconds first. `by` has keys of `GROUPS`, at least one."""
        found = [
            Row(
                tuple(row[f"by_{name}"] for name in by),
                *(int(row[name] or 0) for name in _COUNTS),
                *(max(0.0, float(row[name] or 0)) for name in _AMOUNTS),
            )
            for row in self._read(report(year, month, by, where or Filter()))
        ]
        return sorted(found, key=lambda row: (-row.gpu_seconds, -row.cpu_core_seconds, row.group))

    def resources(
        self, year: int, month: int, by: Sequence[str], where: Filter | None = None
    ) -> dict[tuple[str, ...], dict[str, float]]:
        """Return the seconds of each resource by group, for prices; of the same jobs and the same time as `month`."""
        found: dict[tuple[str, ...], dict[str, float]] = {}
        for row in self._read(resources(year, month, by, where or Filter(), self._engine.dialect.name)):
            group = tuple(row[f"by_{name}"] for name in by)
            found.setdefault(group, {})[row["resource"]] = max(0.0, float(row["seconds"] or 0))
        return found

    def close(self) -> None:
        self._engine.dispose()

    def _read(self, statement: Select[Any]) -> list[dict[str, Any]]:
        try:
            with self._engine.connect() as connection:
                found = connection.execute(statement)
                names = tuple(found.keys())
                return [dict(zip(names, row, strict=True)) for row in found]
        except SQLAlchemyError as error:
            said = explained(error, self._database)
            if any(mark in f"{type(error.__cause__).__name__} {said}" for mark in _UNDEFINED):
                raise HistoryError(
                    f"{shown(self._database.url)} has no history: an operator with --history-database creates it, or "
                    "dljob-operator history migrate"
                ) from None
            raise HistoryError(f"{shown(self._database.url)}: {said}") from None


def newest(limit: int, where: Filter) -> Select[Any]:
    """The statement of `History.newest`."""
    chosen = select(JOBS).where(*_chosen(JOBS, where)).order_by(JOBS.c.ended.desc(), JOBS.c.uid.desc()).limit(limit)
    if where.result:
        chosen = chosen.where(JOBS.c.result == where.result)
    if where.since is not None:
        chosen = chosen.where(JOBS.c.ended >= where.since)
    if where.before is not None:
        last = tuple_(literal(where.before[0], JOBS.c.ended.type), literal(where.before[1]))
        chosen = chosen.where(tuple_(JOBS.c.ended, JOBS.c.uid) < last)
    return chosen


def report(year: int, month: int, by: Sequence[str], where: Filter) -> Select[Any]:
    """The statement of `History.month`: one row for each group.

    A job counts in the month in which it ended. What its pods held counts in the months in which they did, as far as
    the rows of days tell: in the month of its end all of it, less what it had used before that month; in an earlier one
    what it had used at the last look of that month, less the same.
    """
    begin, end = months(year, month)
    days = _Days(JOB_DAYS, (), [JOB_DAYS.c[name].label(name) for name in _AMOUNTS])
    parts = [_ended(begin, end, by, where)]
    for groups, amounts, source in _of_days(begin, end, by, where, days):
        none = [literal(0).label(name) for name in _COUNTS]
        sums = [func.sum(amount).label(name) for name, amount in zip(_AMOUNTS, amounts, strict=True)]
        parts.append(source.with_only_columns(*groups, *none, *sums).group_by(*groups))
    every = union_all(*parts).subquery()
    columns = [every.c[f"by_{name}"] for name in by]
    sums = [func.sum(every.c[name]).label(name) for name in (*_COUNTS, *_AMOUNTS)]
    return select(*columns, *sums).group_by(*columns)


def resources(year: int, month: int, by: Sequence[str], where: Filter, dialect: str) -> Select[Any]:
    """The statement of `History.resources`: one row for each group and resource. See `report` for what counts."""
    begin, end = months(year, month)
    each = _each(JOBS.c.usage, "resourceSeconds", dialect)
    parts = [
        select(*_by(JOBS, by), each.c.key.label(_RESOURCE), cast(each.c.value, Double).label(_SECONDS))
        .select_from(JOBS.join(each, true()))
        .where(*_chosen(JOBS, where), JOBS.c.ended >= begin, JOBS.c.ended < end)
    ]
    of_day = _each(JOB_DAYS.c.resources, "", dialect)
    days = _Days(
        JOB_DAYS.join(of_day, true()),
        (of_day.c.key.label(_RESOURCE),),
        [cast(of_day.c.value, Double).label(_SECONDS)],
    )
    for groups, amounts, source in _of_days(begin, end, by, where, days):
        parts.append(source.with_only_columns(*groups, amounts[0].label(_SECONDS)))
    every = union_all(*parts).subquery()
    columns = [every.c[name] for name in (*(f"by_{name}" for name in by), _RESOURCE)]
    return select(*columns, func.sum(every.c[_SECONDS]).label(_SECONDS)).group_by(*columns)


def months(year: int, month: int) -> tuple[datetime, datetime]:
    """The begin of a month and that of the next one."""
    following = (year + 1, 1) if month == 12 else (year, month + 1)
    return datetime(year, month, 1, tzinfo=UTC), datetime(*following, 1, tzinfo=UTC)


def _ended(begin: datetime, end: datetime, by: Sequence[str], where: Filter) -> Select[Any]:
    """The jobs that ended in the month."""

    def count(result: str) -> ColumnElement[Any]:
        return func.sum(case((JOBS.c.result == result, 1), else_=0))

    return (
        select(
            *_by(JOBS, by),
            func.count().label("jobs"),
            count("Succeeded").label("succeeded"),
            count("Failed").label("failed"),
            *(func.sum(JOBS.c[name]).label(name) for name in ("restarts", "preemptions", *_AMOUNTS)),
        )
        .where(*_chosen(JOBS, where), JOBS.c.ended >= begin, JOBS.c.ended < end)
        .group_by(*(JOBS.c[GROUPS[name]] for name in by))
    )


@dataclass(frozen=True)
class _Days:
    """Rows of days: where they come from, what tells them apart besides the job, and their amounts."""

    source: FromClause
    keys: Sequence[Label[Any]]
    amounts: Sequence[Label[Any]]

    def last(self, by: Sequence[str], *conditions: ColumnElement[bool]) -> Subquery:
        """The greatest amounts of each job in the rows of these conditions: they only grow, so its last ones.

        Of a job whose labels have changed one value of each counts.
        """
        groups = [func.max(JOB_DAYS.c[GROUPS[name]]).label(f"by_{name}") for name in by]
        amounts = [func.max(one).label(one.name) for one in self.amounts]
        chosen = select(JOB_DAYS.c.uid, *groups, *self.keys, *amounts).select_from(self.source).where(*conditions)
        return chosen.group_by(JOB_DAYS.c.uid, *(one.element for one in self.keys)).subquery()


_Part = tuple[Sequence[ColumnElement[Any]], Sequence[ColumnElement[Any]], Select[Any]]


def _of_days(begin: datetime, end: datetime, by: Sequence[str], where: Filter, days: _Days) -> Iterator[_Part]:
    """What the rows of days take from a month and add to it: the groups and the amounts of each, and their source."""
    is_earlier = JOB_DAYS.c.day < begin
    is_within = and_(JOB_DAYS.c.day >= begin, JOB_DAYS.c.day < end)
    keys = [one.name for one in days.keys]
    names = [one.name for one in days.amounts]

    ended_within = and_(JOBS.c.ended >= begin, JOBS.c.ended < end, JOBS.c.created < begin)
    before = days.last((), is_earlier, JOB_DAYS.c.uid.in_(select(JOBS.c.uid).where(ended_within)))
    source = select(JOBS.c.uid).join(before, before.c.uid == JOBS.c.uid).where(*_chosen(JOBS, where), ended_within)
    yield [*_by(JOBS, by), *(before.c[key] for key in keys)], [-before.c[name] for name in names], source

    has_ended = select(JOBS.c.uid).where(JOBS.c.uid == JOB_DAYS.c.uid, JOBS.c.ended < end).exists()
    within = days.last(by, is_within, ~has_ended, *_chosen(JOB_DAYS, where))
    others = JOB_DAYS.alias()
    seen = select(others.c.uid).where(others.c.day >= begin, others.c.day < end)
    before = days.last((), is_earlier, JOB_DAYS.c.uid.in_(seen))
    same = and_(before.c.uid == within.c.uid, *(before.c[key] == within.c[key] for key in keys))
    groups = [within.c[name] for name in (*(f"by_{name}" for name in by), *keys)]
    amounts = [within.c[name] - func.coalesce(before.c[name], 0) for name in names]
    yield groups, amounts, select(within.c.uid).select_from(within.outerjoin(before, same))


def _by(table: Table, by: Sequence[str]) -> list[ColumnElement[Any]]:
    return [table.c[GROUPS[name]].label(f"by_{name}") for name in by]


def _chosen(table: Table, where: Filter) -> list[ColumnElement[bool]]:
    """What a filter says of jobs and of their days alike."""
    given = {"cluster": where.cluster, "namespace": where.namespace, "user_name": where.user}
    found = [table.c[name] == value for name, value in given.items() if value]
    return [*found, *([func.lower(table.c.kind) == where.kind.lower()] if where.kind else [])]


def _each(column: Column[Any], key: str, dialect: str) -> TableValuedAlias:
    """The entries of a JSON object, as rows of `key` and `value`."""
    if dialect == POSTGRESQL:
        return func.jsonb_each_text(column[key] if key else column).table_valued("key", "value")
    return func.json_each(column, f"$.{key}" if key else "$").table_valued("key", "value")
