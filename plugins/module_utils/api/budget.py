"""How long one reconcile may write, and whether in parallel; :mod:`..logic.policies.slices` limits the objects.

The connections of a large job compete with those of a small one at the API server. On two cores, which the API server
shared with everything else, a small job took 4.8 times as long beside one that wrote on all eight connections, and 1.9
times as long beside one that kept to the congestion window.
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


class Budget:
    """Permits writes until ``seconds`` have passed since its creation, and at least ``LEAST`` ones. Thread-safe.

    With ``in_window`` more than ``LEAST`` writes keep to the congestion window of the client.
    """

    def __init__(self, seconds: float, in_window: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._in_window = in_window
        self._granted = 0
        self._lock = threading.Lock()

    def in_window(self, writes: int) -> bool:
        """Whether ``writes`` have to keep to the congestion window."""
        return self._in_window and writes > LEAST

    def take(self) -> bool:
        """Whether one more write may start."""
        with self._lock:
            if self._granted >= LEAST and self._clock() >= self._end:
                return False
            self._granted += 1
            return True
