"""Until when the processes of one operator may write: a file that the leader extends and each process reads.

An operator that loses its Lease ends its Ansible workers. It cannot do so while it is itself stopped, by SIGSTOP or a
debugger, and its workers continue; so they compare this deadline with the clock before each write.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from pathlib import Path

from ansible_collections.dljob.operator.plugins.module_utils.shared.boottime import boottime

VARIABLE = "DLJOB_WRITE_DEADLINE_FILE"
"""The environment variable with the file's path. Without it there is no deadline."""
_SIZE = 8


class WriteDeadline:
    """The deadline in ``path``, in seconds of :func:`boottime`. It is safe to use from several processes and threads.

    A new file has the deadline 0: nothing may be written. Raises OSError if the file cannot be created or opened.
    """

    def __init__(self, path: Path, *, create: bool = False) -> None:
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0)
        descriptor = os.open(path, flags, 0o600)
        try:
            if create:
                os.ftruncate(descriptor, _SIZE)
            # one aligned machine word, so that no reader gets a part of it
            self._word = memoryview(mmap.mmap(descriptor, _SIZE)).cast("d")
        finally:
            os.close(descriptor)

    @classmethod
    def of_environment(cls, environ: Mapping[str, str]) -> WriteDeadline | None:
        """The deadline that the operator has set for this process, None if it has set none."""
        path = environ.get(VARIABLE)
        return cls(Path(path)) if path else None

    def extend(self, moment: float) -> None:
        """Permit writes until ``moment``."""
        self._word[0] = moment

    @property
    def seconds_left(self) -> float:
        """0 or less if the deadline has passed."""
        return float(self._word[0]) - boottime()
