"""How much is done at a time: by a user, by the service accounts of a namespace together, and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

MOST_REQUESTS = 2000
"""Requests, streams among them, but probes, which are always answered."""
MOST_OF_USER = 48
"""Requests of a user, streams among them."""
MOST_OF_TENANT = MOST_REQUESTS // 4
MOST_ACTIONS_OF_USER = 2
"""Actions: a restart may hold a thread for minutes."""
MOST_ACTIONS_OF_TENANT = 50


class AtOnce:
    """Counts what has begun and not ended, by a key. For one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: Counter[str] = Counter()

    @contextmanager
    def one(self, key: str = "") -> Iterator[bool]:
        """Whether there is room for one more, which takes it until the context ends."""
        has_room = self._counts[key] < self._most
        self._counts[key] += has_room
        try:
            yield has_room
        finally:
            self._counts[key] -= has_room
            if not self._counts[key]:
                del self._counts[key]
