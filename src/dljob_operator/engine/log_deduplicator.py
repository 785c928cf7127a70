"""What has been said already, so that a retry every few seconds does not fill the log."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

_REMEMBERED = 2_000


class LogDeduplicator:
    """Tells whether something is new. The oldest is forgotten first, and then said again."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._lock = threading.Lock()
        self._said: OrderedDict[Hashable, None] = OrderedDict()
        self._remembered = remembered

    def is_new(self, what: Hashable) -> bool:
        with self._lock:
            new = what not in self._said
            self._said[what] = None
            self._said.move_to_end(what)
            while len(self._said) > self._remembered:
                self._said.popitem(last=False)
            return new
