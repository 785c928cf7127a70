"""The work queue: it orders the jobs to reconcile, with at most one run per job at a time.

Keys are the UIDs of jobs; jobs of the same target may be reconciled together. An event for a queued job changes
nothing; an event for a running job requeues it after the run. A job that failed waits with exponential backoff until it
succeeds or a user changes it.

`ready_lines` says which of the ready jobs comes next.
"""

from __future__ import annotations

import enum
import functools
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.progress import QueueProgress, Stall
from dljob_operator.engine.queue.ready_lines import Line, ReadyLines
from dljob_operator.engine.queue.recent_changes import RecentChanges
from dljob_operator.engine.queue.resource_versions import Written
from dljob_operator.engine.queue.schedule import Schedule

FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 300.0
SETTLE = 0.05
"""Seconds by which an event of an owned object is delayed, because pods of one job change in bursts."""
SETTLE_EACH = 0.0005
"""Additional delay in seconds for each owned object: a reconcile reads all of them, and more of them change."""


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
    line: Line = Line.OWNED
    """That in which it is ready, or was before it was taken."""
    taker: int = 0
    """The thread that reconciles the key, while it runs."""
    dirty: set[Written | None] = field(default_factory=set)
    urgent: bool = False
    settle: float = SETTLE
    ready_since: float = 0.0


class WorkQueue:
    """A queue for `threads` threads. `clock` returns monotonic seconds.

    `on_change` is called with the key for each change by a user and each deletion of a job, one call at a time.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        threads: int = 1,
        on_change: Callable[[str], object] = lambda key: None,
    ) -> None:
        self._clock = clock
        self._on_change = on_change
        self._schedule = Schedule(clock)
        self._changed = self._schedule.changed
        self._items: dict[str, _Item] = {}
        self._lines = ReadyLines(threads, clock)
        self._changes = RecentChanges(clock)
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
            return len(self._lines)

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
                self._changes.note(key)
                self._on_change(key)
            else:
                item.settle = SETTLE + SETTLE_EACH * owned
            if item.state is _State.RUNNING:
                item.dirty.add(cause)
                item.urgent = item.urgent or urgent
            elif urgent:
                item.failures = 0
                self._make_ready(key, item, Line.CHANGED)
            elif not item.failures:
                self._delay(key, item, min(self._schedule.due(key), self._clock() + item.settle))

    def is_contended(self, keys: Collection[str]) -> bool:
        """Whether a user has changed another job than `keys` within the last CONTENTION seconds."""
        with self._changed:
            return self._changes.any_but(keys)

    def continuing(self, keys: Collection[str]) -> list[str]:
        """Return those of this thread's `keys` that continue with their next slice: these leave a thread free."""
        with self._changed:
            return self._lines.continuing(threading.get_ident(), keys)

    def discard(self, key: str) -> None:
        """Remove a deleted job; a run in progress ends by itself."""
        with self._changed:
            self._on_change(key)
            self._items.pop(key, None)
            self._schedule.discard(key)
            self._lines.discard(key)

    def get(
        self,
        limit: Callable[[str], int],
        timeout: float | None = None,
        may_share: Callable[[str, str], bool] = lambda key, namespace: True,
    ) -> list[str] | None:
        """Wait for work and return the keys to run together: one, or up to `limit(target)` of the same target that
        `may_share` a run, each with its namespace.

        Ready keys are divided among the waiting threads. Return [] after `timeout` seconds (0 does not wait), and None
        once the queue is closed. The caller must call `done` for every key.
        """
        with self._changed:
            self._takers += 1
            self._progress.idle(threading.get_ident())
            try:
                return self._schedule.wait(lambda: self._take(limit, may_share), timeout)
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
            item = self._returned(key)
            if item is None:
                return None
            item.next_run = next_run
            news = item.dirty.difference(wrote)
            urgent, item.dirty, item.urgent = item.urgent and bool(news), set(), False
            if ok or urgent:
                item.failures = 0
            else:
                item.failures += 1
            if urgent:
                self._make_ready(key, item, Line.CHANGED)
                return 0.0
            if next_run is NextRun.CONTINUING and ok:
                delay = 0.0
            elif not ok:
                delay = min(FIRST_BACKOFF * 2 ** min(item.failures - 1, 20), LONGEST_BACKOFF)
            elif news:
                delay = item.settle
            elif again_after is not None:
                delay = again_after
            else:
                return None
            self._delay(key, item, self._clock() + delay)
            return delay

    def took(self, namespace: str, seconds: float) -> None:
        """Note how long a reconcile took, also that of a key which is deleted by now; see `ReadyLines.took`."""
        with self._changed:
            self._lines.took(namespace, seconds)

    def postponed(self, key: str) -> None:
        """Return a key whose run did not reconcile it to its line.

        Its backoff goes on, unless a user has changed it.

        Only the thread that got the key from `get` may call this.
        """
        with self._changed:
            item = self._returned(key)
            if item is None:
                return
            urgent, item.dirty, item.urgent = item.urgent, set(), False
            if urgent:
                item.failures = 0
            self._make_ready(key, item, Line.CHANGED if urgent else item.line)

    def close(self) -> None:
        """Make `get` return None in all threads."""
        with self._changed:
            self._schedule.close()

    def _take(self, limit: Callable[[str], int], may_share: Callable[[str, str], bool]) -> list[str] | None:
        @functools.cache
        def is_shared(key: str) -> bool:
            item = self._items[key]
            return item.next_run is NextRun.ORDINARY and may_share(key, item.flow.namespace)

        self._promote()
        thread = threading.get_ident()
        keys = self._lines.take(thread, self._takers, limit, is_shared)
        if keys is None:
            return None
        for key in keys:
            self._items[key].state, self._items[key].taker = _State.RUNNING, thread
        self._progress.took(thread, keys)
        return keys

    def _returned(self, key: str) -> _Item | None:
        """Note that this thread's run of `key` has ended; return its item, None if it was returned or is deleted."""
        thread = threading.get_ident()
        self._progress.returned(thread, key)
        if self._lines.returned(thread, key):
            self._changed.notify_all()
        item = self._items.get(key)
        if item is None or item.state is not _State.RUNNING or item.taker != thread:
            return None
        item.state = _State.IDLE
        return item

    def _make_ready(self, key: str, item: _Item, line: Line) -> None:
        item.line = line
        if line is Line.CHANGED:
            self._lines.move_up(key, item.flow)
        if item.state is not _State.READY:
            item.state = _State.READY
            item.ready_since = self._clock()
            self._schedule.discard(key)
            self._lines.add(key, item.flow, line)
            self._changed.notify()

    def _delay(self, key: str, item: _Item, due: float) -> None:
        if item.state is not _State.READY:
            item.state = _State.DELAYED
            self._schedule.set(key, due)

    def _promote(self) -> None:
        """Make due keys ready."""
        while (key := self._schedule.pop()) is not None:
            item = self._items[key]
            self._make_ready(key, item, Line.CONTINUING if item.next_run is NextRun.CONTINUING else Line.OWNED)
