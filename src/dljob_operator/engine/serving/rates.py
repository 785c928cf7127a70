"""Limits of rates, by a key such as a client's address."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

_MOST_KEYS = 4096


@dataclass(frozen=True)
class Rate:
    """So many a second, and up to `burst` at once."""

    per_second: float
    burst: int


class Gate:
    """Lets through what `rate` allows for each `key` of an address. Not for several threads.

    It remembers the last 4,096 keys. `clock` returns monotonic seconds.
    """

    def __init__(
        self, rate: Rate, key: Callable[[str], str] = str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self.key = key
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """How many are left, and since when, the longest unused first."""

    def opens(self, address: str) -> bool:
        key, now = self.key(address), self._clock()
        left, since = self._left.get(key, (float(self._rate.burst), now))
        left = min(float(self._rate.burst), left + (now - since) * self._rate.per_second)
        is_open = left >= 1
        self._left[key] = (left - 1 if is_open else left), now
        self._left.move_to_end(key)
        if len(self._left) > _MOST_KEYS:
            self._left.popitem(last=False)
        return is_open
