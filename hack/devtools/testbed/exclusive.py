"""Refuses to run beside another process that uses the same things."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from devtools.testbed.cluster.errors import ClusterError


@contextlib.contextmanager
def exclusive(file: Path, what: str) -> Iterator[None]:
    """Hold the lock ``file`` in the body. Raises ClusterError if another process does, which runs ``what``.

    The kernel releases the lock of a process that exits.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError(f"{what} is in progress", "wait for its end") from None
        yield
