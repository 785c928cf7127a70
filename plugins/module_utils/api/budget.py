"""How long one reconcile may write, and how many writes at once; :mod:`..logic.policies.slices` limits the objects.

The connections of a large job compete with those of a small one at the API server. On two cores, which the API server
shared with everything else, a small job took 4.8 times as long beside one that wrote on eight connections, and 1.2 to
1.6 times as long beside one that kept to the congestion window and its pauses. A large job uses all connections, for
longer, only as long as no user has changed a job, this one included.
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
ALONE_SECONDS = 4.0
"""For any job, until a user changes one. Between two reconciles of a large job nothing is written for 0.1 to 0.3 s: the
engine waits for the cache, and the next reconcile plans anew."""
LEAST = 16
"""Writes that are never cut: a small job takes one reconcile, however slow the API server is."""


class Budget:
    """Permits writes until ``seconds`` have passed since its creation, and at least ``LEAST`` ones. Thread-safe.

    While the job ``is_alone`` it permits them for ``ALONE_SECONDS``. More than ``LEAST`` writes keep to the congestion
    window of the client where the job ``is_contended`` from the start, or is alone no longer. Where ``is_alone`` is
    ``None``, the engine does not say whether the job is alone.
    """

    def __init__(
        self,
        seconds: float,
        is_contended: bool = False,
        is_alone: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._seconds = seconds
        self._is_contended = is_contended
        self._is_alone = is_alone
        self._granted = 0
        self._lock = threading.Lock()

    def in_window(self, writes: int) -> bool:
        """Whether ``writes`` have to keep to the congestion window from now on."""
        return writes > LEAST and (self._is_contended or (self._is_alone is not None and not self._is_alone()))

    @property
    def is_beside_others(self) -> bool:
        """Whether it has permitted the writes of a large job, while users wait for other jobs."""
        return self.in_window(self._granted)

    def take(self) -> bool:
        """Whether one more write may start."""
        with self._lock:
            if self._granted >= LEAST and self._clock() >= self._began + self._longest():
                return False
            self._granted += 1
            return True

    def _longest(self) -> float:
        is_alone = not self._is_contended and self._is_alone is not None and self._is_alone()
        return ALONE_SECONDS if is_alone else self._seconds
