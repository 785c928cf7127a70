"""The memory of a process beside its objects: that of the C library's allocator, and the code of libraries."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

_M_ARENA_MAX = -8
"""The parameter's number in glibc's malloc.h."""
_MADV_PAGEOUT = 21
"""Linux's number, in mman-common.h."""
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


def drop_unused_code() -> None:
    """Let the kernel drop the code of shared libraries that no other process uses. What is called again returns.

    A library is read whole when it is loaded, and most of its code is never called: 6 MiB of cryptography, which
    Ansible imports for vaults. Systems other than Linux 5.4 and newer keep it.
    """
    madvise = _glibc("madvise")
    if madvise is None:
        return
    with Path("/proc/self/maps").open(encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            span, access, *_ = line.split()
            if ".so" in line and "w" not in access:
                begin, end = (int(address, 16) for address in span.split("-"))
                madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MADV_PAGEOUT)


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
        time.sleep(period)
        drop_unused_code()
        while True:
            trim(0)
            time.sleep(period)

    threading.Thread(target=loop, name="trim", daemon=True).start()
    return True


def _glibc(name: str) -> Callable[..., int] | None:
    """The function of that name, or None where the C library has none."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
