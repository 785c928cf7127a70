"""How long a watch rests before it begins again after a failure."""

from __future__ import annotations

import time
from collections.abc import Callable

from dljob.errors import ApiError, DljobError

_MOST_FAILURES = 5
_FIRST, _LONGEST = 0.5, 8.0
"""Seconds of a rest."""
_STEP = 0.25
_GONE = 410
CONNECTION = ""
"""Stands for what fails of all watches at a time."""


class Patience:
    """For a watch until ``stop()`` is true, or for ``timeout`` seconds."""

    def __init__(self, stop: Callable[[], bool], timeout: float | None) -> None:
        self._stop = stop
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._failures: dict[str, int] = {}

    @property
    def left(self) -> float | None:
        """Seconds; ``None`` without an end."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def is_over(self) -> bool:
        return self._stop() or self.left == 0.0

    def forget(self, what: str) -> None:
        """It has succeeded, and so has the connection."""
        self._failures.pop(what, None)
        self._failures.pop(CONNECTION, None)

    def rest(self, what: str, error: DljobError) -> None:
        """Rest, twice as long after each failure; raises ``error`` after five in a row.

        That the server has forgotten a place in the history (410) is no failure the first time.
        """
        failures = self._failures[what] = self._failures.get(what, 0) + 1
        if failures > _MOST_FAILURES:
            raise error
        if failures > 1 or not (isinstance(error, ApiError) and error.status == _GONE):
            self.pause(min(_LONGEST, _FIRST * 2 ** (failures - 1)))

    def pause(self, seconds: float = _FIRST) -> None:
        """Wait, not beyond the end."""
        until = time.monotonic() + seconds
        while not self.is_over and (left := until - time.monotonic()) > 0:
            time.sleep(min(_STEP, left, *([] if self.left is None else [self.left])))
