"""The jobs that are ready for a worker, in four lines: which of them the next worker takes.

Earlier lines come first, but none is passed over for long; within a line the namespaces take turns. While a namespace
has changed jobs, every other take is of the second line, from a namespace that has none: the burst of one tenant does
not delay the statuses of another. The last two lines never occupy all threads, so a small job does not wait for large
ones, nor that of one namespace for those of another in which each write waits for a timeout. The queues of both engines
use it.
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from dljob_operator.engine.queue.fair_queue import FairQueue, Flow

PASSED_OVER = 4
"""Takes from earlier lines in a row before one from a line that waits."""
FEW = 4
"""Keys in a take from a line while an earlier one waits. In a burst of new jobs the takes of changed ones stay full."""


class Line(enum.IntEnum):
    """Why a job is ready. Creating pods of a new job precedes status updates, so changed jobs come first."""

    CHANGED = 0
    """A user has created or changed it."""
    OWNED = 1
    """An object that it owns has changed, or its time is due."""
    CONTINUING = 2
    """Its last run ended before it had written everything."""
    SLOW = 3
    """It would be in one of the first two lines, but reconciles in its namespace have lately taken long."""


LONG = 8.0
"""Seconds of a reconcile that make its namespace slow. An admission webhook that does not answer takes ten seconds of
each write by default; a slice of a large job takes four."""
SLOW_FOR = 360.0
"""Seconds for which a namespace is slow after such a reconcile: longer than the engine's longest backoff."""
_LIMITED = (Line.CONTINUING, Line.SLOW)


class _Queue(FairQueue):
    """Ready keys, and how often a take has passed over them in favour of an earlier line."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_over = 0


class _Take(NamedTuple):
    """The keys that a thread took from a line and has not returned."""

    thread: int
    line: Line
    left: set[str]


class ReadyLines:
    """The ready keys for `threads` threads. Not thread-safe: its owner locks. `clock` returns monotonic seconds."""

    def __init__(self, threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._most_limited = max(1, threads - 1)
        self._lines = {line: _Queue() for line in Line}
        self._limited: list[_Take] = []
        """The takes that leave a thread to the others."""
        self._slow: dict[str, float] = {}
        """Until when each slow namespace is slow."""
        self._took_changed = False
        """Whether the last take was of changed jobs."""

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def add(self, key: str, flow: Flow, line: Line) -> None:
        """Append `key`, which is in no line, to `line`, or to that of the slow namespaces."""
        is_slow = line not in _LIMITED and self._is_slow(flow.namespace)
        self._lines[Line.SLOW if is_slow else line].add(key, flow)

    def took(self, namespace: str, seconds: float) -> None:
        """Note how long a reconcile took: if it was long, all keys of its namespace leave a thread to the others."""
        if seconds < LONG:
            return
        now = self._clock()
        self._slow = {name: until for name, until in self._slow.items() if until > now}
        self._slow[namespace] = now + SLOW_FOR
        for line in (Line.CHANGED, Line.OWNED):
            for key, flow in self._lines[line].remove(namespace).items():
                self._lines[Line.SLOW].add(key, flow)

    def _is_slow(self, namespace: str) -> bool:
        return self._slow.get(namespace, 0.0) > self._clock()

    def move_up(self, key: str, flow: Flow) -> None:
        """Move `key`, if it is in a later line, to the end of the first, unless its namespace is slow."""
        if self._is_slow(flow.namespace):
            return
        if any(self._lines[line].discard(key) for line in Line if line is not Line.CHANGED):
            self._lines[Line.CHANGED].add(key, flow)

    def discard(self, key: str) -> None:
        """Remove `key`, if it is in a line."""
        for line in self._lines.values():
            line.discard(key)

    def take(
        self, thread: int, takers: int, limit: Callable[[str], int], may_share: Callable[[str], bool]
    ) -> list[str] | None:
        """Remove and return the keys for `thread`: one, or up to `limit(target)` that may share a run; None if none.

        Keys are divided among the `takers`, the threads that wait for work, this one included.
        """
        following = self._next_line()
        if following is None:
            return None
        line, avoided = following
        first, flow = self._lines[line].pop(avoided)
        keys = [first]
        if may_share(first) and (most := limit(flow.target)) > 1:
            if any(self._lines[earlier] for earlier in Line if earlier < line):
                most = min(most, FEW)
            share = min(most, math.ceil((self._lines[line].count(flow.target) + 1) / takers))
            keys += self._lines[line].pop_more(flow.target, share - 1, may_share)
        if line in _LIMITED:
            self._limited.append(_Take(thread, line, set(keys)))
        return keys

    def continuing(self, thread: int, keys: Iterable[str]) -> list[str]:
        """Those of the `keys` that `thread` took from the line of continuing jobs: these leave one to the others."""
        takes = [one for one in self._limited if one.thread == thread and one.line is Line.CONTINUING]
        return [key for key in keys if any(key in one.left for one in takes)]

    def returned(self, thread: int, key: str) -> bool:
        """Note the end of a run; return whether a thread may now take the next job of the last lines."""
        taken = next((one for one in self._limited if one.thread == thread and key in one.left), None)
        if taken is None:
            return False
        taken.left.discard(key)
        if taken.left:
            return False
        self._limited.remove(taken)
        return True

    def _next_line(self) -> tuple[Line, Collection[str]] | None:
        """The first line with keys, or a later one that was passed over for too long; and the namespaces to avoid."""
        is_full = len(self._limited) >= self._most_limited
        waiting = [line for line in Line if self._lines[line] and not (is_full and line in _LIMITED)]
        if not waiting:
            return None
        chosen = next((line for line in reversed(waiting) if self._lines[line].passed_over >= PASSED_OVER), waiting[0])
        avoided: Collection[str] = ()
        if chosen is Line.CHANGED and self._is_turn_of_others():
            chosen, avoided = Line.OWNED, self._lines[Line.CHANGED].namespaces
        for line in waiting:
            if line is not chosen:
                self._lines[line].passed_over += 1
            elif not avoided:  # otherwise the other keys of the line still wait
                self._lines[line].passed_over = 0
        self._took_changed = chosen is Line.CHANGED
        return chosen, avoided

    def _is_turn_of_others(self) -> bool:
        """Whether, after a take of changed jobs, an object has changed in a namespace that has no changed job."""
        return self._took_changed and self._lines[Line.OWNED].has_namespace_beside(self._lines[Line.CHANGED].namespaces)
