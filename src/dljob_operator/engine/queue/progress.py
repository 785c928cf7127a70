"""Whether the workers of a queue make progress: what the liveness probe needs to know of runs.

The fork server kills a run at its time limit, and the client kills a fork server that does not. So a worker that has
neither taken nor returned a job for longer than that waits for something that will not happen, and only a new process
helps. A batch of which a job was returned has made progress. Jobs that wait are no problem while any worker makes
progress, nor before the caches are filled, which waits for the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dljob_operator.failed_check import FailedCheck

MARGIN = 300.0
"""Seconds beside a run's time limit: for a new fork server, and for the requests that precede and follow a run."""


@dataclass(frozen=True)
class Stall:
    """What waits, and for how long."""

    key: str
    seconds: float
    running: bool
    """Whether a worker has the job; else the job is ready and no worker takes it."""

    def describe(self, name: str) -> FailedCheck:
        """What is wrong with the job, which users know by `name`."""
        if self.running:
            details = f"the reconcile of {name} has made no progress for {self.seconds:.0f} s"
            return FailedCheck("a reconcile makes no progress", details)
        details = f"{name} has waited for {self.seconds:.0f} s, and no worker takes any job"
        return FailedCheck("no worker takes any job", details)


class QueueProgress:
    """What each thread has taken from a queue. Hold the queue's lock for every call.

    `clock` returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: dict[int, list[str]] = {}
        self._at: dict[int, float] = {}
        self._last = clock()

    def took(self, thread: int, keys: Sequence[str]) -> None:
        """`thread` has taken `keys`."""
        self._held[thread] = list(keys)
        self._at[thread] = self._last = self._clock()

    def returned(self, thread: int, key: str) -> None:
        """The run of `key` has ended."""
        held = self._held.get(thread)
        if held is None:
            return
        if key in held and len(held) > 1:
            held.remove(key)
        self._at[thread] = self._last = self._clock()

    def idle(self, thread: int) -> None:
        """`thread` asks for work."""
        self._held.pop(thread, None)
        self._at.pop(thread, None)
        self._last = self._clock()

    def stall(self, limit: float, ready: tuple[str, float] | None) -> Stall | None:
        """Return the run, or the job of `ready`, that has waited for more than `limit` seconds without any progress.

        `ready` is the job that is ready for the longest time, and since when.
        """
        now = self._clock()
        thread = min(self._at, key=self._at.__getitem__, default=None)
        if thread is not None and now - self._at[thread] > limit:
            return Stall(self._held[thread][0], now - self._at[thread], running=True)
        if ready is not None and now - max(ready[1], self._last) > limit:
            return Stall(ready[0], now - ready[1], running=False)
        return None


class Queue(Protocol):
    def stall(self, limit: float) -> Stall | None: ...


class Caches(Protocol):
    """The part of InformerSet that says whether the caches are filled and how users call a job."""

    def wait_filled(self, timeout: float) -> bool: ...

    def name_of(self, uid: str) -> str: ...


def stalled(queue: Queue, caches: Caches, run_timeout: float) -> str:
    """Which job no longer makes progress, "" if all do. Without the caches the workers wait for the API server."""
    stall = queue.stall(run_timeout + MARGIN) if caches.wait_filled(0) else None
    return "" if stall is None else stall.describe(caches.name_of(stall.key))
