"""The times at which keys are due, and threads that wait for them: what the two queues have in common."""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Callable

LONGEST_WAIT = 3600.0
"""Seconds. Python raises OverflowError for waits above some centuries, and a due time may be any number."""
_SLACK = 64  # outdated entries of the heap that may accumulate before they are removed


class Schedule:
    """At most one due time for each key. Hold `changed` for every call. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.changed = threading.Condition()
        self._clock = clock
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._closed = False

    def __len__(self) -> int:
        return len(self._due)

    def due(self, key: str) -> float:
        """When `key` is due, infinity if it is not scheduled."""
        return self._due.get(key, math.inf)

    def set(self, key: str, due: float) -> None:
        """Replace the due time of `key`."""
        if due == self._due.get(key):
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        if len(self._heap) > 2 * len(self._due) + _SLACK:
            self._heap = [(at, each) for each, at in self._due.items()]
            heapq.heapify(self._heap)
        # Wake all threads: a single one might be busy when this is due.
        self.changed.notify_all()

    def discard(self, key: str) -> None:
        """Remove `key`, if it is scheduled."""
        self._due.pop(key, None)

    def pop(self) -> str | None:
        """Remove and return the key that is due for the longest time, None if none is due."""
        if self._next() > self._clock():
            return None
        _, key = heapq.heappop(self._heap)
        del self._due[key]
        return key

    def wait(self, take: Callable[[], list[str] | None], timeout: float | None) -> list[str] | None:
        """Return the keys of `take`, which is called at once, at every change and at every due time until it has some.

        Return [] after `timeout` seconds (0 does not wait, None waits for ever), and None once the schedule is closed.
        """
        deadline = math.inf if timeout is None else self._clock() + timeout
        while not self._closed:
            taken = take()
            if taken is not None:
                return taken
            now = self._clock()
            if now >= deadline:
                return []
            wake = min(deadline, self._next())
            self.changed.wait(None if wake == math.inf else min(max(0.0, wake - now), LONGEST_WAIT))
        return None

    def close(self) -> None:
        """Make `wait` return None in all threads."""
        self._closed = True
        self.changed.notify_all()

    def _next(self) -> float:
        """Return the first due time, after removing outdated entries; infinity if nothing is scheduled."""
        while self._heap:
            due, key = self._heap[0]
            if self._due.get(key) == due:
                return due
            heapq.heappop(self._heap)
        return math.inf
