"""The work queue: it orders the jobs to reconcile, with at most one run per job at a time.

Keys are the UIDs of jobs; jobs of the same group may be reconciled together. An event for a queued job changes nothing;
an event for a running job requeues it after the run. A job that failed waits with exponential backoff until it succeeds
or a user changes it.
"""

from __future__ import annotations

import enum
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field

from dljob_operator.engine.resource_versions import Written
from dljob_operator.engine.schedule import Schedule

FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 300.0
SETTLE = 0.05
"""Seconds by which an event of an owned object is delayed, because pods of one job change in bursts."""
SETTLE_EACH = 0.0005
"""Additional delay in seconds for each owned object: a reconcile reads all of them, and more of them change."""
_URGENT_IN_A_ROW = 4  # gets of urgent keys in a row before one of another key, if both wait


class _State(enum.Enum):
    IDLE = enum.auto()
    DELAYED = enum.auto()
    READY = enum.auto()
    RUNNING = enum.auto()


@dataclass
class _Item:
    group: Hashable
    state: _State = _State.IDLE
    failures: int = 0
    alone: bool = False
    taker: int = 0
    """The thread that reconciles the key, while it runs."""
    dirty: set[Written | None] = field(default_factory=set)
    urgent: bool = False
    settle: float = SETTLE


class WorkQueue:
    """A queue for several threads. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._schedule = Schedule(clock)
        self._changed = self._schedule.changed
        self._items: dict[str, _Item] = {}
        self._ready: OrderedDict[str, None] = OrderedDict()
        # Changes of a job itself come before changes of its owned objects: creating pods of a new job precedes status
        # updates.
        self._first: OrderedDict[str, None] = OrderedDict()
        self._in_a_row = 0
        self._takers = 0

    @property
    def waiting(self) -> int:
        """The number of threads that wait for work."""
        return self._takers

    @property
    def depth(self) -> int:
        """The number of keys that are ready."""
        with self._changed:
            self._promote()
            return len(self._ready) + len(self._first)

    def add(
        self, key: str, group: Hashable, *, cause: Written | None = None, urgent: bool = False, owned: int = 0
    ) -> None:
        """Queue `key`.

        `urgent` means that the job itself changed: it becomes ready immediately, even during its backoff. `cause` is
        the object and resource version of the event; see `done`. `owned` is the number of objects that the job owns.
        """
        with self._changed:
            item = self._items.setdefault(key, _Item(group))
            if not urgent:
                item.settle = SETTLE + SETTLE_EACH * owned
            if item.state is _State.RUNNING:
                item.dirty.add(cause)
                item.urgent = item.urgent or urgent
            elif urgent:
                item.failures = 0
                self._make_ready(key, item, urgent=True)
            elif not item.failures:
                self._delay(key, item, min(self._schedule.due(key), self._clock() + item.settle))

    def discard(self, key: str) -> None:
        """Remove a deleted job; a run in progress ends by itself."""
        with self._changed:
            self._items.pop(key, None)
            self._schedule.discard(key)
            self._ready.pop(key, None)
            self._first.pop(key, None)

    def get(self, limit: Callable[[Hashable], int], timeout: float | None = None) -> list[str] | None:
        """Wait for work and return the keys to run together: one, or up to `limit(group)` of the same group.

        Ready keys are divided among the waiting threads. Return [] after `timeout` seconds (0 does not wait), and None
        once the queue is closed. The caller must call `done` for every key.
        """
        with self._changed:
            self._takers += 1
            try:
                return self._schedule.wait(lambda: self._take(limit), timeout)
            finally:
                self._takers -= 1

    def done(
        self,
        key: str,
        *,
        ok: bool,
        again_after: float | None = None,
        wrote: Collection[Written] = (),
        alone: bool = False,
    ) -> float | None:
        """Mark the run of a key as ended; return the seconds until its next run, None if none is scheduled.

        Only the thread that got the key from `get` may call this. A second call for the same run has no effect.

        `again_after` is the delay of the next run of a job that is ok; a failed one runs after its backoff. Events
        during the run requeue the key, except those whose cause the run itself `wrote`. `alone` keeps the next run of
        this job from being shared, for a shared run that ended without a report on its jobs.
        """
        with self._changed:
            item = self._items.get(key)
            if item is None or item.state is not _State.RUNNING or item.taker != threading.get_ident():
                return None
            item.state = _State.IDLE
            item.alone = alone and not ok
            news = item.dirty.difference(wrote)
            urgent, item.dirty, item.urgent = item.urgent and bool(news), set(), False
            if ok or urgent:
                item.failures = 0
            else:
                item.failures += 1
            if not ok and not urgent:
                delay = min(FIRST_BACKOFF * 2 ** min(item.failures - 1, 20), LONGEST_BACKOFF)
            elif news:
                delay = 0.0 if urgent else item.settle
            elif again_after is not None:
                delay = again_after
            else:
                return None
            self._delay(key, item, self._clock() + delay)
            return delay

    def close(self) -> None:
        """Make `get` return None in all threads."""
        with self._changed:
            self._schedule.close()

    def _take(self, limit: Callable[[Hashable], int]) -> list[str] | None:
        self._promote()
        if not self._ready and not self._first:
            return None
        urgent = bool(self._first) and not (self._ready and self._in_a_row >= _URGENT_IN_A_ROW)
        self._in_a_row = self._in_a_row + 1 if urgent else 0
        ready = self._first if urgent else self._ready
        first = next(iter(ready))
        chosen = self._items[first]
        keys = [first]
        if not chosen.alone and (most := limit(chosen.group)) > 1:
            same = [key for key in ready if self._items[key].group == chosen.group and not self._items[key].alone]
            keys = same[: min(most, math.ceil(len(same) / self._takers))]
        for key in keys:
            del ready[key]
            self._items[key].state, self._items[key].taker = _State.RUNNING, threading.get_ident()
        return keys

    def _make_ready(self, key: str, item: _Item, *, urgent: bool = False) -> None:
        if urgent and self._ready.pop(key, key) is None:  # it was ready already
            self._first[key] = None
        if item.state is not _State.READY:
            item.state = _State.READY
            self._schedule.discard(key)
            (self._first if urgent else self._ready)[key] = None
            self._changed.notify()

    def _delay(self, key: str, item: _Item, due: float) -> None:
        if item.state is not _State.READY:
            item.state = _State.DELAYED
            self._schedule.set(key, due)

    def _promote(self) -> None:
        """Make due keys ready."""
        while (key := self._schedule.pop()) is not None:
            self._make_ready(key, self._items[key])
