"""Threads that read from the cluster, and hand over what they have read in batches."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from dljob.errors import DljobError

T = TypeVar("T")
AGAIN_SECONDS = 5.0
"""Until a feed that failed is begun again."""
_AHEAD = 20_000


class Feed(Generic[T]):
    """Items of an endless iterable, which a thread reads. ``begin`` gets what tells it to stop."""

    def __init__(self, begin: Callable[[Callable[[], bool]], Iterable[T]], *, repeat: bool) -> None:
        self._begin = begin
        self._repeat = repeat
        self._items: queue.Queue[T] = queue.Queue(_AHEAD)
        self._stopped = threading.Event()
        self.error = ""
        """The sentence of the last failure; "" once items come again."""
        self.ended = False
        threading.Thread(target=self._run, daemon=True).start()

    def take(self) -> list[T]:
        """All that has come since."""
        found: list[T] = []
        while len(found) < _AHEAD:
            try:
                found.append(self._items.get_nowait())
            except queue.Empty:
                break
        return found

    def stop(self) -> None:
        """Let the thread end."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                for item in self._begin(self._stopped.is_set):
                    self.error = ""
                    if not self._put(item):
                        return
            except DljobError as e:
                self.error = str(e)
            except Exception as e:  # the view shows it: a thread that ended would leave the view as it is
                self.error = f"This cannot be read at the moment ({type(e).__name__})."
            if not self._repeat:
                break
            self._stopped.wait(AGAIN_SECONDS)
        self.ended = True

    def _put(self, item: T) -> bool:
        while not self._stopped.is_set():
            try:
                self._items.put(item, timeout=0.5)
            except queue.Full:
                continue
            return True
        return False
