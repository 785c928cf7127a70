"""A thread pool that several callers share fairly."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from ansible_collections.dljob.operator.plugins.module_utils.api.congestion import CongestionWindow

Item = TypeVar("Item")


class BoundedExecutor:
    """``width`` threads that all callers share. Starting threads per job would add a tenth to the cost of a reconcile.

    A caller has at most twice ``width`` items queued at a time, so that no thread idles, and the threads take items in
    the order of submission. So the thousand pods of one job delay those of another job by a few writes only.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._threads = ThreadPoolExecutor(width, "executor")
        self.window = CongestionWindow(width)
        """The callers report how long their requests take."""

    def map(
        self, items: Sequence[Item], do: Callable[[Item], object], at_once: Callable[[], float] = lambda: math.inf
    ) -> None:
        """Call ``do`` for each of ``items``, started in their order, and return when all calls have finished.

        No more of them run at a time than ``at_once`` says, which is called before each start and after each end.

        Raises the exception of the first item that failed, after all others have finished. ``do`` must not call this
        method.
        """
        if len(items) < 2:
            for item in items:
                do(item)
            return
        submitted = 0  # those that have not finished
        finished = threading.Condition()

        def is_free() -> bool:
            return submitted < min(2 * self._width, at_once())

        def run(item: Item) -> None:
            nonlocal submitted
            try:
                do(item)
            finally:
                with finished:
                    submitted -= 1
                    finished.notify()

        futures: list[Future[None]] = []
        try:
            for item in items:
                with finished:
                    finished.wait_for(is_free)
                    submitted += 1
                futures.append(self._threads.submit(run, item))
        finally:
            wait(futures)
        for future in futures:
            future.result()

    def close(self) -> None:
        """Stop the threads after they have finished all submitted items."""
        self._threads.shutdown()
