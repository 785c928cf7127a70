"""The records that wait for the database: bounded, the newest of each job. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from dljob_operator.history.record import JobRecord

MOST_RECORDS = 10_000
MOST_BYTES = 16 * 2**20
_BYTES_OF_A_RECORD = 2_000
"""Roughly, of one without a message and an account."""
_BYTES_OF_AN_ENTRY = 100
"""Roughly, of a number with its name in an account."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    record: JobRecord
    size: int
    exists: bool


class Pending:
    """Records by the UID of their job. It is not safe to use from several threads.

    Where there is no room, a job that still exists in the cluster is left out, since it can be read from there again:
    `is_incomplete` says so. A deleted one takes the place of such a job; only where there is none is it lost.
    """

    def __init__(self, most_records: int = MOST_RECORDS, most_bytes: int = MOST_BYTES) -> None:
        self._most_records = most_records
        self._most_bytes = most_bytes
        self._bytes = 0
        self._existing: dict[str, _Waiting] = {}
        self._deleted: dict[str, _Waiting] = {}
        self.is_incomplete = False
        """Whether jobs that exist have been left out."""

    def __len__(self) -> int:
        return len(self._existing) + len(self._deleted)

    def add(self, record: JobRecord, *, exists: bool) -> bool:
        """Keep a record in place of an older one of its job; return False where it is lost."""
        uid = record.identity.uid
        for kept in (self._existing, self._deleted):
            if uid in kept:
                self._bytes -= kept.pop(uid).size
        waiting = _Waiting(record, _size(record), exists)
        while not self._has_room(waiting.size):
            if exists or not self._existing:
                self.is_incomplete |= exists
                return exists
            self.is_incomplete = True
            self._bytes -= self._existing.popitem()[1].size
        self._put(waiting)
        return True

    def take(self, most: int) -> list[tuple[JobRecord, bool]]:
        """Remove and return up to `most` records, the oldest first, each with whether its job exists."""
        found: list[tuple[JobRecord, bool]] = []
        for kept in (self._deleted, self._existing):
            while kept and len(found) < most:
                waiting = kept.pop(next(iter(kept)))
                self._bytes -= waiting.size
                found.append((waiting.record, waiting.exists))
        return found

    def give_back(self, taken: list[tuple[JobRecord, bool]]) -> int:
        """Keep what could not be written, unless a newer record of its job has come; return how many are lost."""
        return sum(
            not self.add(record, exists=exists)
            for record, exists in taken
            if record.identity.uid not in self._existing and record.identity.uid not in self._deleted
        )

    def _has_room(self, size: int) -> bool:
        return len(self) < self._most_records and self._bytes + size <= self._most_bytes

    def _put(self, waiting: _Waiting) -> None:
        (self._existing if waiting.exists else self._deleted)[waiting.record.identity.uid] = waiting
        self._bytes += waiting.size


def _size(record: JobRecord) -> int:
    interruptions = (record.usage or {}).get("interruptions", ())
    numbers = len(record.amounts.resources) * 2 + sum(4 + len(one["resourceSeconds"]) for one in interruptions)
    return _BYTES_OF_A_RECORD + 2 * len(record.message) + len(record.log_link) + numbers * _BYTES_OF_AN_ENTRY
