"""How many writes at once the API server takes without becoming slower: a congestion window, as of TCP Vegas.

A large job beside which users wait for others keeps to it. At a distant API server it soon opens to all connections; at
one that shares two cores with everything else even one write at a time may be too much, since each new pod makes work
for others: then there are pauses between the writes.
"""

from __future__ import annotations

import threading

SLOWER = 2.0
"""Times the shortest write: a write that takes longer has waited for others."""
CLOSING = 0.7
"""What such a write leaves of the window."""
WIDENING = 0.1
"""What a write that is not slow adds to a window below 1."""
NARROWEST = 0.1
"""The window never closes further: the pauses take nine times as long as the writes."""
LONGEST_PAUSE = 0.1
"""Seconds, however slow the API server is."""
FORGETTING = 1.001
"""By which each write raises the shortest time that is remembered, so that an API server may become slower for good. Of
a busy one the shortest time is that before it became busy, which some hundred writes must not hide."""


class CongestionWindow:
    """A width between ``NARROWEST`` and ``most``, learned from the duration of writes. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._shortest = float("inf")
        self._last = 0.0
        self._width = 1.0
        self._lock = threading.Lock()

    @property
    def width(self) -> int:
        """How many writes may be in progress at a time, at least one."""
        return max(1, int(self._width))

    @property
    def pause(self) -> float:
        """Seconds to wait before a write, where one at a time without pauses is too much."""
        with self._lock:
            return min(LONGEST_PAUSE, self._last * max(0.0, 1 / self._width - 1))

    def measured(self, seconds: float) -> None:
        """A write has taken ``seconds``. As many as the window is wide widen it by one, unless they were slow."""
        with self._lock:
            self._last = seconds
            self._shortest = min(seconds, self._shortest * FORGETTING)
            if seconds > SLOWER * self._shortest:
                self._width = max(NARROWEST, self._width * CLOSING)
            else:
                more = WIDENING if self._width < 1 else 1 / self._width
                self._width = min(float(self._most), self._width + more)
