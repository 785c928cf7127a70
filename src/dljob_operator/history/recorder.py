"""The thread that writes the history. It neither blocks nor fails a reconcile, whatever the database does."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Protocol

from prometheus_client import CollectorRegistry
from sqlalchemy.exc import SQLAlchemyError

from dljob_operator import logs
from dljob_operator.engine.cache.predicates import Change, object_fields
from dljob_operator.history.database import Database, HistoryError, explained, is_refused_value, shown
from dljob_operator.history.metrics import HistoryMetrics
from dljob_operator.history.pending import Pending
from dljob_operator.history.record import DayRecord, JobRecord, Place, day_record, job_record

_LOG = logging.getLogger(__name__)
BATCH = 500
"""Records of a transaction."""
Jobs = Callable[[], Iterable[Mapping[str, Any]]]
"""Returns all jobs of the cache."""


class Writer(Protocol):
    """The part of `Store` that the recorder uses."""

    def migrate(self) -> str: ...

    def save(self, records: Iterable[JobRecord]) -> None: ...

    def save_days(self, records: Iterable[DayRecord]) -> None: ...

    def prune(self, older_than: datetime, may_go_on: Callable[[], bool] = ...) -> int: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Pace:
    """The times of a recorder, in seconds."""

    first_pause: float = 1.0
    longest_pause: float = 60.0
    """Between tries while the database is out."""
    look: float = 600.0
    """Between looks at the jobs that run."""
    prune: float = 86_400.0
    gather: float = 0.2
    """How long the first record waits for others of its transaction."""
    last_writes: float = 5.0
    """For what waits when the operator ends."""


@dataclass(frozen=True)
class Settings:
    """What a recorder has from the settings of the operator."""

    database: Database
    retention: timedelta = timedelta(days=365)
    place: Place = field(default_factory=Place)


class Recorder:
    """Takes the changes of jobs with `job_changed`, on any thread, and writes those that ended on its own thread.

    `jobs` returns all that the cache has. `now` is the clock.
    """

    def __init__(
        self,
        settings: Settings,
        writer: Writer,
        registry: CollectorRegistry,
        pace: Pace | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._writer = writer
        self._metrics = HistoryMetrics(registry)
        self._pace = pace or Pace()
        self._now = now
        self._jobs: Jobs = tuple
        self._pending = Pending()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._is_migrated = False
        self._revision = ""
        self._pause = 0.0
        self._next_look = self._next_prune = 0.0
        self._said = ""
        self._ends_at = float("inf")
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    def job_changed(self, change: Change) -> None:
        """Note a job that has ended, or was deleted. It raises nothing, and waits for no database."""
        try:
            self._note(change)
        except Exception:
            _LOG.exception("the history cannot read a job", extra=logs.fields(**object_fields(change.obj)))

    def start(self, jobs: Jobs) -> None:
        """Begin to write."""
        self._jobs = jobs
        self._next_look = time.monotonic() + self._pace.look
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, for a few seconds at most, and end the thread."""
        self._ends_at = time.monotonic() + self._pace.last_writes
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(self._pace.last_writes + 1.0)
        if waiting := len(self._pending):
            _LOG.warning("the history lacks jobs until the next start", extra=logs.fields(jobs=waiting))

    def _note(self, change: Change) -> None:
        is_deleted = change.new is None
        record = job_record(change.obj, self._settings.place, self._now(), is_deleted=is_deleted)
        if record is None or record.ended < self._oldest():
            return
        if change.old is not None and not is_deleted:
            before = job_record(change.old, self._settings.place, self._now())
            if before is not None and _without_version(before) == _without_version(record):
                return
        with self._changed:
            if not self._pending.add(record, exists=not is_deleted):
                self._metrics.lost.inc()
            self._metrics.queue.set(len(self._pending))
            self._changed.notify_all()

    def _oldest(self) -> datetime:
        return self._now() - self._settings.retention

    # On the thread

    def _run(self) -> None:
        while self._wait():
            try:
                self._write_all()
                self._pause = 0.0
                if self._said:
                    _LOG.info("the history's database takes writes again")
                    self._said = ""
            except (SQLAlchemyError, HistoryError) as error:
                self._failed(error)
            except Exception:
                self._back_off()
                _LOG.exception("the history failed with an internal error")
        self._writer.close()

    def _wait(self) -> bool:
        """Wait until there is something to write; return False where the thread must end."""
        with self._changed:
            if self._pause:
                pause = random.uniform(0.5, 1.0) * self._pause
                if self._stopping.is_set():
                    self._changed.wait(min(pause, self._pace.first_pause))
                else:
                    self._changed.wait_for(self._stopping.is_set, pause)
            elif not self._pending and not self._pending.is_incomplete and self._is_migrated:
                due = min(self._next_look, self._next_prune) - time.monotonic()
                self._changed.wait_for(lambda: len(self._pending) or self._stopping.is_set(), max(0.0, due))
        if not self._stopping.is_set():
            self._stopping.wait(self._pace.gather)
            return True
        return bool(len(self._pending)) and time.monotonic() < self._ends_at

    def _write_all(self) -> None:
        if not self._is_migrated:
            revision = self._writer.migrate()
            self._is_migrated = True
            if not self._revision:
                database = shown(self._settings.database.url)
                _LOG.info("keeping a history of jobs", extra=logs.fields(database=database, revision=revision))
            self._revision = revision
        self._write_pending()
        if self._stopping.is_set():
            return
        if self._pending.is_incomplete:
            self._write_left_out()
        if time.monotonic() >= self._next_look:
            self._write_days()
            self._next_look = time.monotonic() + self._pace.look
        if time.monotonic() >= self._next_prune:
            self._metrics.pruned.inc(self._writer.prune(self._oldest(), lambda: not self._stopping.is_set()))
            self._next_prune = time.monotonic() + self._pace.prune

    def _write_pending(self) -> None:
        while True:
            with self._changed:
                taken = self._pending.take(BATCH)
            if not taken:
                return
            try:
                self._save([record for record, _ in taken])
            except BaseException:
                with self._changed:
                    self._metrics.lost.inc(self._pending.give_back(taken))
                raise
            finally:
                with self._changed:
                    self._metrics.queue.set(len(self._pending))

    def _write_left_out(self) -> None:
        """Read the jobs of the cache again, since there was no room for all of them."""
        with self._changed:
            self._pending.is_incomplete = False
        try:
            for batch in _batches(self._ended()):
                self._save(batch)
        except BaseException:
            with self._changed:
                self._pending.is_incomplete = True
            raise

    def _ended(self) -> Iterator[JobRecord]:
        for job in self._jobs():
            record = job_record(job, self._settings.place, self._now())
            if record is not None and record.ended >= self._oldest():
                yield record

    def _write_days(self) -> None:
        found = (day_record(job, self._settings.place, self._now()) for job in self._jobs())
        for batch in _batches(record for record in found if record is not None):
            self._writer.save_days(batch)
            self._metrics.wrote("job_days", len(batch), self._now().timestamp())

    def _save(self, records: list[JobRecord]) -> None:
        """Write the records; one that the database refuses is left out, so that it does not keep the others waiting."""
        try:
            self._writer.save(records)
        except SQLAlchemyError as error:
            if not is_refused_value(error):
                raise
            if len(records) == 1:
                self._refused(records[0], error)
                return
            for record in records:
                self._save([record])
            return
        self._metrics.wrote("jobs", len(records), self._now().timestamp())

    def _refused(self, record: JobRecord, error: SQLAlchemyError) -> None:
        self._metrics.lost.inc()
        of_job = logs.fields(
            kind=record.identity.kind,
            namespace=record.identity.namespace,
            name=record.identity.name,
            error=explained(error, self._settings.database),
        )
        _LOG.error("the history's database refuses a job", extra=of_job)

    def _failed(self, error: SQLAlchemyError | HistoryError) -> None:
        """Begin anew with the next try: a server that was replaced may have been the first, or lack the tables."""
        self._metrics.failures.inc()
        self._is_migrated = False
        self._writer.close()
        self._back_off()
        said = explained(error, self._settings.database) if isinstance(error, SQLAlchemyError) else str(error)
        if said != self._said:  # an outage of hours is one line, not one for each try
            self._said = said
            fields = logs.fields(database=shown(self._settings.database.url), error=said, jobs=len(self._pending))
            _LOG.error("cannot write the history of jobs; trying again", extra=fields)

    def _back_off(self) -> None:
        self._pause = min(max(self._pace.first_pause, self._pause * 2), self._pace.longest_pause)


def _without_version(record: JobRecord) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in JobRecord.__slots__ if name != "version")


def _batches(records: Iterable[Any]) -> Iterator[list[Any]]:
    left = iter(records)
    while batch := list(islice(left, BATCH)):
        yield batch
