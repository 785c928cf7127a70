"""How long one reconcile may write, and how much at once; :mod:`..logic.policies.slices` limits the objects.

The connections of a large job compete with those of a small one at the API server. On two cores, which the API server
shared with everything else, a small job took 4.8 times as long beside one that wrote on all eight connections.
"""

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


NARROW = 1
"""Writes at once of a large job that is new, or beside which users wait for others. On two cores a small job beside it
took 1.5 times as long as alone, with two writes at once 2.1 times."""


class Budget:
    """Permits writes until ``seconds`` have passed since its creation, and at least ``LEAST`` ones. Thread-safe.

    ``width`` limits the writes at once of a reconcile that has more than ``LEAST``; ``None`` is no limit.
    """

    def __init__(self, seconds: float, width: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._width = width
        self._granted = 0
        self._lock = threading.Lock()

    def width(self, writes: int) -> int | None:
        """How many of ``writes`` may be in progress at a time, ``None`` for as many as there are connections."""
        return self._width if writes > LEAST else None

    def take(self) -> bool:
        """Whether one more write may start."""
        with self._lock:
            if self._granted >= LEAST and self._clock() >= self._end:
                return False
            self._granted += 1
            return True
