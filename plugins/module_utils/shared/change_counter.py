"""Counts of users' changes that an engine shares with its workers while they reconcile.

A batch brings what the engine knew when it sent the batch. A large job may write for seconds, and meanwhile a user may
delete it or create another job: the workers see the counts of such changes in memory that all of them have in common.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import time
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping

ANY_JOB = ""
"""The key of the count of the changes of all jobs."""
GROUPS = 16384
"""Jobs whose keys have the same hash modulo this share a count: a change of one of them looks like one of the others.
That ends a slice of a large job early, and costs a reconcile that has yet to begin its writes a request: rare even
while users create hundreds of jobs in a second."""
CONTENTION = 2.0
"""Seconds after a change of a job during which the writes of others are held back."""
_COUNT = struct.Struct("=Q")
_TIME_OFFSET = _COUNT.size * (1 + GROUPS)
"""Of the time of the last change in nanoseconds. It is an integer, since a float may be read while it is written."""
_SIZE = _TIME_OFFSET + _COUNT.size


class ChangeCounter:
    """Numbers in shared memory: of changes of all jobs, and of each job, and when the last was. A key is a job's UID.

    One process increments them, one thread at a time; the others only compare them. ``clock`` returns the monotonic
    seconds of the machine, which its processes have in common.
    """

    def __init__(self, fd: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Map the file of a counter of another process and own its descriptor. A fork keeps the mapping."""
        os.set_inheritable(fd, False)
        self._memory = mmap.mmap(fd, _SIZE)
        self._clock = clock
        self.fd = fd
        """For the process that gets a counter of its own on this memory."""
        weakref.finalize(self, os.close, fd)

    @classmethod
    def create(cls, clock: Callable[[], float] = time.monotonic) -> ChangeCounter:
        """A new counter on a file without a name, which the kernel deletes after its last user.

        Where the kernel has files in memory, it is one: on a full disk a write to a mapped page ends the process.
        """
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("dljob-changes")
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.truncate(fd, _SIZE)
        return cls(fd, clock)

    def count(self, key: str = ANY_JOB) -> int:
        """How many changes of the job there were, or of any job."""
        return int(_COUNT.unpack_from(self._memory, _offset(key))[0])

    def counts(self, keys: Iterable[str]) -> dict[str, int]:
        """The counts of some jobs and of all."""
        return {key: self.count(key) for key in (ANY_JOB, *keys)}

    def increment(self, key: str) -> None:
        """A user has changed or deleted the job."""
        _COUNT.pack_into(self._memory, _TIME_OFFSET, int(self._clock() * 1e9))
        for each in (key, ANY_JOB):
            _COUNT.pack_into(self._memory, _offset(each), self.count(each) + 1)

    def is_recent(self) -> bool:
        """Whether a user has changed any job within the last ``CONTENTION`` seconds."""
        if not self.count():
            return False
        return self._clock() < _COUNT.unpack_from(self._memory, _TIME_OFFSET)[0] / 1e9 + CONTENTION


class ChangesSince:
    """What users have changed since an engine read some jobs: ``before`` are the counts at that time."""

    def __init__(self, counter: ChangeCounter, before: Mapping[str, int]) -> None:
        self._counter = counter
        self._before = before

    def of(self, key: str) -> bool:
        """Whether the job has changed, or may have, because its count is not among ``before``."""
        return self._before.get(key) != self._counter.count(key)

    def of_any(self) -> bool:
        """Whether any job has changed."""
        return self.of(ANY_JOB)

    def are_recent(self) -> bool:
        """Whether the last change of all, also before the engine read the jobs, was within ``CONTENTION`` seconds."""
        return self._counter.is_recent()


def _offset(key: str) -> int:
    return _COUNT.size * (1 + zlib.crc32(key.encode()) % GROUPS) if key else 0
