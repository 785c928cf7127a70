"""The work queue: it orders the jobs to reconcile, with at most one run per job at a time.

Keys are the UIDs of jobs; jobs of the same target may be reconciled together. An event for a queued job changes
nothing; an event for a running job requeues it after the run. A job that failed waits with exponential backoff until it
succeeds or a user changes it.

Ready jobs are in one of three lines: changed by a user, changed in their owned objects, and those whose last run ended
before it had written everything. Earlier lines come first, but none is passed over for long; within a line the
namespaces take turns. The last line never occupies all threads, so a small job does not wait for large ones.
"""

from __future__ import annotations

import enum
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from dljob_operator.engine.fair_queue import FairQueue, Flow
from dljob_operator.engine.progress import QueueProgress, Stall
from dljob_operator.engine.resource_versions import Written
from dljob_operator.engine.schedule import Schedule
from dljob_operator.engine.settings import LARGEST_BATCH

FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 300.0
SETTLE = 0.05
"""Seconds by which an event of an owned object is delayed, because pods of one job change in bursts."""
SETTLE_EACH = 0.0005
"""Additional delay in seconds for each owned object: a reconcile reads all of them, and more of them change."""
CONTENTION = 2.0
"""Seconds after a change of a job during which the writes of others are held back."""
_PASSED_OVER = 4  # gets from earlier lines in a row before one from a line that waits


class NextRun(enum.Enum):
    """How the next run of a job takes place."""

    ORDINARY = enum.auto()
    ALONE = enum.auto()
    """Not shared with other jobs: the last, shared run ended without a report on its jobs."""
    CONTINUING = enum.auto()
    """Immediately and alone, in turn with other such jobs: the last run ended before it had written everything."""


class _State(enum.Enum):
    IDLE = enum.auto()
    DELAYED = enum.auto()
    READY = enum.auto()
    RUNNING = enum.auto()


@dataclass
class _Item:
    flow: Flow
    state: _State = _State.IDLE
    failures: int = 0
    next_run: NextRun = NextRun.ORDINARY
    taker: int = 0
    """The thread that reconciles the key, while it runs."""
    dirty: set[Written | None] = field(default_factory=set)
    urgent: bool = False
    settle: float = SETTLE
    ready_since: float = 0.0


class _Line(FairQueue):
    """Ready keys, and how often a get has passed over them in favour of an earlier line."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_over = 0


class WorkQueue:
    """A queue for `threads` threads. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, threads: int = 1) -> None:
        self._clock = clock
        self._most_continuing = max(1, threads - 1)
        self._schedule = Schedule(clock)
        self._changed = self._schedule.changed
        self._items: dict[str, _Item] = {}
        # Changes of a job itself come before changes of its owned objects: creating pods of a new job precedes status
        # updates.
        self._changed_jobs, self._changed_owned, self._continuing = _Line(), _Line(), _Line()
        self._lines = (self._changed_jobs, self._changed_owned, self._continuing)
        self._running_continuing: dict[str, int] = {}
        """The thread of each run of a continuing job."""
        self._changes: OrderedDict[str, float] = OrderedDict()
        """When the jobs that a user changed last were changed, by key: one more than a batch can have."""
        self._takers = 0
        self._progress = QueueProgress(clock)

    @property
    def waiting(self) -> int:
        """The number of threads that wait for work."""
        return self._takers

    @property
    def depth(self) -> int:
        """The number of keys that are ready."""
        with self._changed:
            self._promote()
            return sum(map(len, self._lines))

    def stall(self, limit: float) -> Stall | None:
        """Return what has waited for more than `limit` seconds while nothing was taken or returned, None if nothing."""
        with self._changed:
            self._promote()
            ready = ((key, item.ready_since) for key, item in self._items.items() if item.state is _State.READY)
            return self._progress.stall(limit, min(ready, key=lambda one: one[1], default=None))

    def add(self, key: str, flow: Flow, *, cause: Written | None = None, urgent: bool = False, owned: int = 0) -> None:
        """Queue `key`.

        `urgent` means that the job itself changed: it becomes ready immediately, even during its backoff. `cause` is
        the object and resource version of the event; see `done`. `owned` is the number of objects that the job owns.
        """
        with self._changed:
            item = self._items.setdefault(key, _Item(flow))
            if urgent:
                self._note_change(key)
            else:
                item.settle = SETTLE + SETTLE_EACH * owned
            if item.state is _State.RUNNING:
                item.dirty.add(cause)
                item.urgent = item.urgent or urgent
            elif urgent:
                item.failures = 0
                self._make_ready(key, item, urgent=True)
            elif not item.failures:
                self._delay(key, item, min(self._schedule.due(key), self._clock() + item.settle))

    def is_contended(self, keys: Collection[str]) -> bool:
        """Whether a user has changed another job than `keys` within the last CONTENTION seconds."""
        with self._changed:
            since = self._clock() - CONTENTION
            return any(at > since for key, at in self._changes.items() if key not in keys)

    def discard(self, key: str) -> None:
        """Remove a deleted job; a run in progress ends by itself."""
        with self._changed:
            self._items.pop(key, None)
            self._schedule.discard(key)
            for line in self._lines:
                line.discard(key)

    def get(self, limit: Callable[[str], int], timeout: float | None = None) -> list[str] | None:
        """Wait for work and return the keys to run together: one, or up to `limit(target)` of the same target.

        Ready keys are divided among the waiting threads. Return [] after `timeout` seconds (0 does not wait), and None
        once the queue is closed. The caller must call `done` for every key.
        """
        with self._changed:
            self._takers += 1
            self._progress.idle(threading.get_ident())
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
        next_run: NextRun = NextRun.ORDINARY,
    ) -> float | None:
        """Mark the run of a key as ended; return the seconds until its next run, None if none is scheduled.

        Only the thread that got the key from `get` may call this. A second call for the same run has no effect.

        `again_after` is the delay of the next run of a job that is ok; a failed one runs after its backoff. Events
        during the run requeue the key, except those whose cause the run itself `wrote`. See `NextRun` for `next_run`.
        """
        with self._changed:
            self._progress.returned(threading.get_ident(), key)
            if self._running_continuing.get(key) == threading.get_ident():
                del self._running_continuing[key]
                self._changed.notify_all()  # a thread may take the next continuing job
            item = self._items.get(key)
            if item is None or item.state is not _State.RUNNING or item.taker != threading.get_ident():
                return None
            item.state = _State.IDLE
            item.next_run = next_run
            news = item.dirty.difference(wrote)
            urgent, item.dirty, item.urgent = item.urgent and bool(news), set(), False
            if ok or urgent:
                item.failures = 0
            else:
                item.failures += 1
            if next_run is NextRun.CONTINUING and ok:
                delay = 0.0
            elif not ok and not urgent:
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

    def _note_change(self, key: str) -> None:
        self._changes[key] = self._clock()
        self._changes.move_to_end(key)
        if len(self._changes) > LARGEST_BATCH + 1:
            self._changes.popitem(last=False)

    def _take(self, limit: Callable[[str], int]) -> list[str] | None:
        self._promote()
        line = self._next_line()
        if line is None:
            return None
        first, flow = line.pop()
        keys = [first]
        if self._is_shared(first) and (most := limit(flow.target)) > 1:
            share = min(most, math.ceil((line.count(flow.target) + 1) / self._takers))
            keys += line.pop_more(flow.target, share - 1, self._is_shared)
        thread = threading.get_ident()
        for key in keys:
            self._items[key].state, self._items[key].taker = _State.RUNNING, thread
        self._progress.took(thread, keys)
        if line is self._continuing:
            self._running_continuing[first] = thread
        return keys

    def _next_line(self) -> _Line | None:
        """The first line with keys, or a later one that was passed over for too long."""
        is_full = len(self._running_continuing) >= self._most_continuing
        waiting = [line for line in self._lines if line and not (is_full and line is self._continuing)]
        if not waiting:
            return None
        chosen = next((line for line in reversed(waiting) if line.passed_over >= _PASSED_OVER), waiting[0])
        for line in waiting:
            line.passed_over = 0 if line is chosen else line.passed_over + 1
        return chosen

    def _is_shared(self, key: str) -> bool:
        return self._items[key].next_run is NextRun.ORDINARY

    def _make_ready(self, key: str, item: _Item, *, urgent: bool = False) -> None:
        if urgent and (self._changed_owned.discard(key) or self._continuing.discard(key)):
            self._changed_jobs.add(key, item.flow)
        if item.state is not _State.READY:
            item.state = _State.READY
            item.ready_since = self._clock()
            self._schedule.discard(key)
            continues = item.next_run is NextRun.CONTINUING
            line = self._changed_jobs if urgent else self._continuing if continues else self._changed_owned
            line.add(key, item.flow)
            self._changed.notify()

    def _delay(self, key: str, item: _Item, due: float) -> None:
        if item.state is not _State.READY:
            item.state = _State.DELAYED
            self._schedule.set(key, due)

    def _promote(self) -> None:
        """Make due keys ready."""
        while (key := self._schedule.pop()) is not None:
            self._make_ready(key, self._items[key])
