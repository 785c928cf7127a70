"""How many writes at once the API server takes without becoming slower: a congestion window, as of TCP Vegas.

A large job beside which users wait for others keeps to it. At a distant API server it soon opens to all connections; at
one that shares two cores with everything else it stays at one or two.
"""

from __future__ import annotations

import threading

SLOWER = 2.0
"""Times the shortest write: a write that takes longer has waited for others."""
CLOSING = 0.7
"""What such a write leaves of the window."""
FORGETTING = 1.01
"""By which each write raises the shortest time that is remembered, so that an API server may become slower for good."""


class CongestionWindow:
    """A width between 1 and ``most``, learned from the duration of writes. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._shortest = float("inf")
        self._width = 1.0
        self._lock = threading.Lock()

    @property
    def width(self) -> int:
        return int(self._width)

    def measured(self, seconds: float) -> None:
        """A write has taken ``seconds``. As many as the window is wide widen it by one, unless they were slow."""
        with self._lock:
            self._shortest = min(seconds, self._shortest * FORGETTING)
            if seconds > SLOWER * self._shortest:
                self._width = max(1.0, self._width * CLOSING)
            else:
                self._width = min(float(self._most), self._width + 1 / self._width)
