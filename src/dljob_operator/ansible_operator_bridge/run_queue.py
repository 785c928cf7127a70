"""The runs of roles with long-lived workers that ansible-operator has started and that wait for a worker.

ansible-operator starts as many runs at a time as it may, first come, first served. `engine.ready_lines` decides which
of them is next and which share a batch, as in the embedded engine. A job has one run at a time: if the shim was killed,
ansible-operator starts another one while the first still runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.progress import QueueProgress, Stall
from dljob_operator.engine.queue.ready_lines import Line, ReadyLines

T = TypeVar("T")


@dataclass(frozen=True)
class Turn:
    """When a run has its turn: in which line it waits, and whether it may share a batch."""

    line: Line = Line.CHANGED
    may_share: bool = True

    def with_request(self, later: Turn) -> Turn:
        """The turn of a run that answers a later request too: in the earlier line of the two."""
        return Turn(min(self.line, later.line), self.may_share and later.may_share)


@dataclass
class _Waiting(Generic[T]):
    flow: Flow
    turn: Turn
    requests: list[T]
    ready_since: float = 0.0


@dataclass
class _Running(Generic[T]):
    thread: int
    taken: _Waiting[T]

    @property
    def requests(self) -> list[T]:
        return self.taken.requests


class RunQueue(Generic[T]):
    """A queue of requests by the key of their job, for `threads` threads. Any thread may call its methods.

    `clock` returns monotonic seconds.
    """

    def __init__(self, threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._progress = QueueProgress(clock)
        self._changed = threading.Condition()
        self._lines = ReadyLines(threads, clock)
        self._waiting: dict[str, _Waiting[T]] = {}
        self._running: dict[str, _Running[T]] = {}
        self.takers = 0
        """The number of threads that wait for runs."""
        self._closed = False

    @property
    def depth(self) -> int:
        """The number of requests that wait."""
        with self._changed:
            return sum(len(waiting.requests) for waiting in self._waiting.values())

    def add(self, key: str, flow: Flow, turn: Turn, request: T) -> bool:
        """Add a request for a run of the job `key`; return False once the queue is closed.

        Requests for the same job that wait together are answered by one run, in the earliest of their lines.
        """
        with self._changed:
            if self._closed:
                return False
            waiting = self._waiting.get(key)
            if waiting is not None:
                waiting.requests.append(request)
                waiting.turn = waiting.turn.with_request(turn)
                if turn.line is Line.CHANGED:
                    self._lines.move_up(key, flow)
                return True
            self._waiting[key] = _Waiting(flow, turn, [request])
            if key not in self._running:
                self._make_ready(key)
            return True

    def stall(self, limit: float) -> Stall | None:
        """Return what has waited for more than `limit` seconds while nothing was taken or returned, None if nothing."""
        with self._changed:
            ready = ((key, one.ready_since) for key, one in self._waiting.items() if key not in self._running)
            return self._progress.stall(limit, min(ready, key=lambda one: one[1], default=None))

    def get(self, limit: Callable[[str], int]) -> list[str] | None:
        """Wait for jobs and return the keys to run together: one, or up to `limit(target)`; None once it is closed.

        The caller must call `done` for each of them.
        """
        with self._changed:
            self.takers += 1
            thread = threading.get_ident()
            self._progress.idle(thread)
            try:
                while not self._closed:
                    keys = self._lines.take(thread, self.takers, limit, self._may_share)
                    if keys is not None:
                        for key in keys:
                            self._running[key] = _Running(thread, self._waiting.pop(key))
                        self._progress.took(thread, keys)
                        return keys
                    self._changed.wait()
                return None
            finally:
                self.takers -= 1

    def continuing(self, keys: Collection[str]) -> list[str]:
        """Return those of this thread's `keys` that continue with their next slice: these leave a thread free."""
        with self._changed:
            return self._lines.continuing(threading.get_ident(), keys)

    def requests(self, key: str) -> list[T]:
        """The requests that the calling thread's run of `key` answers; none if this thread does not run it."""
        with self._changed:
            running = self._running.get(key)
            return list(running.requests) if running is not None and running.thread == threading.get_ident() else []

    def done(self, key: str) -> None:
        """The calling thread's run of `key` has ended. A second call for the same run has no effect."""
        with self._changed:
            running = self._running.get(key)
            if running is None or running.thread != threading.get_ident():
                return
            self._end(key)
            if key in self._waiting:
                self._make_ready(key)

    def postponed(self, key: str) -> bool:
        """The calling thread's run of `key` did not begin it: its requests return to their line or, with a later
        request, to that one's if it is earlier. Return False once the queue is closed."""
        with self._changed:
            running = self._running.get(key)
            if self._closed or running is None or running.thread != threading.get_ident():
                return False
            taken, later = running.taken, self._waiting.get(key)
            if later is not None:
                taken.requests += later.requests
                taken.turn = taken.turn.with_request(later.turn)
            self._end(key)
            self._waiting[key] = taken
            self._make_ready(key)
            return True

    def took(self, namespace: str, seconds: float) -> None:
        """Note how long a reconcile took; see `ReadyLines.took`."""
        with self._changed:
            self._lines.took(namespace, seconds)

    def close(self) -> list[T]:
        """Make `get` return None in all threads; return the requests that have not begun."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            left = [request for waiting in self._waiting.values() for request in waiting.requests]
            self._waiting.clear()
            return left

    def _end(self, key: str) -> None:
        del self._running[key]
        self._progress.returned(threading.get_ident(), key)
        if self._lines.returned(threading.get_ident(), key):
            self._changed.notify_all()

    def _make_ready(self, key: str) -> None:
        waiting = self._waiting[key]
        waiting.ready_since = self._clock()
        self._lines.add(key, waiting.flow, waiting.turn.line)
        self._changed.notify()

    def _may_share(self, key: str) -> bool:
        return self._waiting[key].turn.may_share
