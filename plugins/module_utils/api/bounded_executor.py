"""A thread pool that several callers share fairly."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")


class BoundedExecutor:
    """``width`` threads that all callers share. Starting threads per job would add a tenth to the cost of a reconcile.

    A caller has at most twice ``width`` items queued at a time, so that no thread idles, and the threads take items in
    the order of submission. So the thousand pods of one job delay those of another job by a few writes only.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._threads = ThreadPoolExecutor(width, "executor")

    def map(self, items: Sequence[Item], do: Callable[[Item], None], width: int | None = None) -> None:
        """Call ``do`` for each of ``items``, started in their order, and return when all calls have finished.

        At most ``width`` of them run at a time; ``None`` is no limit but the number of threads.

        Raises the exception of the first item that failed, after all others have finished. ``do`` must not call this
        method.
        """
        if len(items) < 2:
            for item in items:
                do(item)
            return
        slots = threading.Semaphore(width or 2 * self._width)

        def run(item: Item) -> None:
            try:
                do(item)
            finally:
                slots.release()

        futures: list[Future[None]] = []
        try:
            for item in items:
                slots.acquire()
                futures.append(self._threads.submit(run, item))
        finally:
            wait(futures)
        for future in futures:
            future.result()

    def close(self) -> None:
        """Stop the threads after they have finished all submitted items."""
        self._threads.shutdown()
