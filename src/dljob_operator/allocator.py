"""The memory allocator of the C library, in a process of many threads."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable

_M_ARENA_MAX = -8
"""The parameter's number in glibc's malloc.h."""
_TUNABLE = "glibc.malloc.arena_max="
_ARENAS = 2
_TRIM_PERIOD = 60.0
"""Seconds. A trim takes a few milliseconds, in which Python's other threads go on."""


def limit_arenas(count: int = _ARENAS) -> bool:
    """Let all threads allocate from ``count`` arenas; returns whether it did. Call it before the first thread starts.

    glibc has up to eight arenas for each processor, and memory that was freed in one of them serves no allocation in
    another: a process that decodes responses on 30 threads keeps more and more free memory. ``MALLOC_ARENA_MAX`` and
    ``GLIBC_TUNABLES`` in the environment set the same parameter and take precedence. Without glibc this does nothing.
    """
    if "MALLOC_ARENA_MAX" in os.environ or _TUNABLE in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    mallopt = _glibc("mallopt")
    return mallopt is not None and bool(mallopt(_M_ARENA_MAX, count))


def start_trimming(period: float = _TRIM_PERIOD) -> bool:
    """Return free memory to the system every ``period`` seconds until the process ends; returns whether it does.

    By itself glibc returns only what is free at the end of an arena: one small object that lives there keeps all the
    free memory below it in the process. ``malloc_trim`` returns whole free pages wherever they are. Without glibc this
    does nothing.
    """
    trim = _glibc("malloc_trim")
    if trim is None:
        return False

    def loop() -> None:
        while True:
            time.sleep(period)
            trim(0)

    threading.Thread(target=loop, name="trim", daemon=True).start()
    return True


def _glibc(name: str) -> Callable[..., int] | None:
    """The function of that name, or None where the C library has none."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
