"""Log repeated messages once, so that retries every few seconds do not fill the log."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

_REMEMBERED = 2_000


class LogDeduplicator:
    """Remembers the last messages. A message that was evicted counts as new again."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._remembered = remembered

    def is_new(self, what: Hashable) -> bool:
        with self._lock:
            new = what not in self._seen
            self._seen[what] = None
            self._seen.move_to_end(what)
            while len(self._seen) > self._remembered:
                self._seen.popitem(last=False)
            return new
