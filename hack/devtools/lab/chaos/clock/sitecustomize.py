"""Gives a Python process a wall clock that is wrong: Python imports this at its start if PYTHONPATH has this folder.

The file that OFFSET_FILE names has the number of seconds by which the clock is ahead, and may change while the process
runs. The monotonic clock stays right, as it does when a machine's clock is set. Linux has no namespace for the wall
clock, and libfaketime 0.9.10 makes ``time.sleep`` of Python fail where it leaves the monotonic clock alone.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OFFSET_FILE = "DLJOB_CHAOS_CLOCK"
_READ_EVERY = 0.2
"""Seconds for which an offset that was read holds."""


class _Offset:
    """The present offset in seconds, 0 while the file is absent or being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._value = 0.0
        self._until = 0.0

    def __call__(self) -> float:
        if time.monotonic() >= self._until:
            try:
                self._value = float(self._path.read_text(encoding="ascii"))
            except (OSError, ValueError):
                self._value = 0.0
            self._until = time.monotonic() + _READ_EVERY
        return self._value


class _Converter:
    """``time.gmtime`` or ``time.localtime``, whose default is the present.

    Not a Python function: logging keeps ``time.localtime`` in a class, where a function would become a method.
    """

    def __init__(self, real: Callable[[float], time.struct_time]) -> None:
        self._real = real

    def __call__(self, seconds: Any = None) -> time.struct_time:
        return self._real(time.time() if seconds is None else seconds)


def install(path: Path) -> None:
    """Replace the functions by which Python reads the wall clock; one that was given a time still converts that."""
    offset = _Offset(path)
    real_time, real_time_ns = time.time, time.time_ns
    real_datetime = datetime.datetime

    class Datetime(real_datetime):  # type: ignore[misc, valid-type]
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return cls.fromtimestamp(real_time() + offset(), tz)

    time.time = lambda: real_time() + offset()
    time.time_ns = lambda: real_time_ns() + int(offset() * 1e9)
    time.gmtime, time.localtime = _Converter(time.gmtime), _Converter(time.localtime)
    datetime.datetime = Datetime  # type: ignore[misc]


if OFFSET_FILE in os.environ:
    install(Path(os.environ[OFFSET_FILE]))
