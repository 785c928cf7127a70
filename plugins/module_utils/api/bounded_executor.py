"""Several things at a time, for several callers side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")


class BoundedExecutor:
    """``width`` threads that all callers share: to start some anew for each job cost a tenth of what its reconcile did.

    A caller has no more than twice ``width`` of its items here, enough that no thread waits for the next one, and they
    are taken as they come. So the thousand pods of one job keep those of another waiting for a few writes only.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._threads = ThreadPoolExecutor(width, "executor")

    def map(self, items: Sequence[Item], do: Callable[[Item], None]) -> None:
        """``do`` every one of ``items``, begun in their order, and return when all are done.

        Raises what the first of them raised, when the others are done too. ``do`` must not call this again.
        """
        if len(items) < 2:
            for item in items:
                do(item)
            return
        room = threading.Semaphore(2 * self._width)

        def one(item: Item) -> None:
            try:
                do(item)
            finally:
                room.release()

        begun: list[Future[None]] = []
        try:
            for item in items:
                room.acquire()
                begun.append(self._threads.submit(one, item))
        finally:
            wait(begun)
        for future in begun:
            future.result()

    def close(self) -> None:
        """End the threads; what was begun is finished first."""
        self._threads.shutdown()
