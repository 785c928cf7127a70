"""Lets one process at a time build and push images, such as two test runs that were started by hand.

They share the cache, Docker's builder, and the names that an image has only while it is pushed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from devtools.build.images.errors import ImagesError
from devtools.testbed.base.progress import Reporter

STALLED = 1800.0
"""Seconds that one image may take another process before waiting for it is given up; the largest takes 10 minutes."""
INTERVAL = 0.5


@contextlib.contextmanager
def exclusive(cache: Path, image: str, report: Reporter, stalled: float = STALLED) -> Iterator[None]:
    """Build ``image`` in the body. Waits as long as other processes get on, image by image.

    Raises ImagesError if one of them works on the same image for ``stalled`` seconds. The kernel releases the lock of a
    process that exits.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "images.lock").open("a+") as stream:
        _acquire(stream, report, stalled)
        stream.truncate(0)
        stream.write(f"process {os.getpid()} with the image {image}\n")
        stream.flush()
        yield  # the line stays: without it, a process that waits would for a moment not know for whom


def _acquire(stream: IO[str], report: Reporter, stalled: float) -> None:
    holder, since = None, time.monotonic()
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            stream.seek(0)
            found = stream.read().strip() or "another process"
        if found != holder:
            holder, since = found, time.monotonic()
            report.say(f"  waiting for {holder}")
        elif time.monotonic() - since > stalled:
            raise ImagesError(
                f"{holder} has held the lock of image builds for {stalled:.0f} s", "end that process, and try again"
            )
        time.sleep(INTERVAL)
