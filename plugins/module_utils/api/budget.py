"""The time that one reconcile may write; the limit in objects is in :mod:`..logic.policies.slices`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

FIRST_SECONDS = 0.25
"""For a job without pods. A new job is reconciled before all others, whatever its size, so this is the longest time by
which one new job delays another on the same worker."""
SECONDS = 0.5
"""For a job that has pods: the reconciles of large jobs take turns."""
LEAST = 16
"""Writes that are never cut, twice the connections of a client: a small job takes one reconcile, however slow the API
server is."""


class Budget:
    """Permits writes until ``seconds`` have passed since its creation, and at least ``LEAST`` ones. Thread-safe."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._granted = 0
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Whether one more write may start."""
        with self._lock:
            if self._granted >= LEAST and self._clock() >= self._end:
                return False
            self._granted += 1
            return True
