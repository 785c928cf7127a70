"""A count of users' changes that an engine shares with its workers while they reconcile.

A batch brings what the engine knew when it sent the batch. A large job may write for seconds, and meanwhile a user may
delete it or create another job: the workers see the count of such changes in memory that all of them have in common.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import weakref

_COUNT = struct.Struct("=Q")


class ChangeCounter:
    """A number in shared memory. One process increments it, one thread at a time; the others only compare it."""

    def __init__(self, fd: int) -> None:
        """Map the file of a counter of another process and own its descriptor. A fork keeps the mapping."""
        os.set_inheritable(fd, False)
        self._memory = mmap.mmap(fd, _COUNT.size)
        self.fd = fd
        """For the process that gets a counter of its own on this memory."""
        weakref.finalize(self, os.close, fd)

    @classmethod
    def create(cls) -> ChangeCounter:
        """A new counter on a file without a name, which the kernel deletes after its last user.

        Where the kernel has files in memory, it is one: on a full disk a write to a mapped page ends the process.
        """
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("dljob-changes")
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.truncate(fd, _COUNT.size)
        return cls(fd)

    @property
    def value(self) -> int:
        return int(_COUNT.unpack_from(self._memory)[0])

    def increment(self) -> None:
        _COUNT.pack_into(self._memory, 0, self.value + 1)
