"""Which jobs ansible-operator is to be told to look at, and when: a queue for which a nudge is one annotation.

It stands where the embedded engine has its work queue, and takes the same events; but the runs come from
elsewhere, when ansible-operator likes. So a job is

    unknown     no run of it has been seen here: ansible-operator has it before it, and that run sees all
    quiet       nothing to do, or something at a known time
    asked       its annotation has been written; the run to come will see whatever happens until it begins
    running     what happens now is a reason for a nudge afterwards, unless the run did it itself

A copy of the operator that is not the leader sees no runs, so it never requeues. Events come in bursts: a
nudge waits a moment for the others. A failed run is ansible-operator's to repeat.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field

from dljob_operator.engine.queue import SETTLE
from dljob_operator.engine.resource_versions import Written

ASKED_FOR = 60.0
"""Seconds after which a nudge that no run has followed is thought lost."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0


@dataclass
class _Job:
    running: int = 0
    due: float = math.inf
    asked: float = -math.inf
    problems: int = 0
    dirty: set[Written | None] = field(default_factory=set)


class RequeueQueue:
    """Safe to use from several threads. `clock` gives seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._jobs: dict[str, _Job] = {}
        self._heap: list[tuple[float, str]] = []
        self._closed = False

    @property
    def depth(self) -> int:
        """How many requeues are due or will be."""
        with self._changed:
            return sum(job.due < math.inf for job in self._jobs.values())

    def add(
        self, key: str, group: Hashable, *, cause: Written | None = None, urgent: bool = False, owned: int = 0
    ) -> None:
        """Something of the job has changed. `urgent` is for the job itself, which ansible-operator sees too."""
        with self._changed:
            job = self._jobs.get(key)
            if job is None or urgent:
                return
            if job.running:
                job.dirty.add(cause)
            elif self._clock() - job.asked >= ASKED_FOR:
                self._schedule(key, job, SETTLE)

    def discard(self, key: str) -> None:
        """Drop a job that is gone."""
        with self._changed:
            self._jobs.pop(key, None)

    def begin(self, key: str) -> None:
        """A run of the job begins; its snapshot is taken after this."""
        with self._changed:
            job = self._jobs.setdefault(key, _Job())
            job.running += 1
            job.due, job.asked, job.problems = math.inf, -math.inf, 0

    def done(
        self,
        key: str,
        *,
        ok: bool,
        again_after: float | None = None,
        wrote: Collection[Written] = (),
        alone: bool = False,
    ) -> float | None:
        """The run has ended; return the seconds until the nudge that follows, None if none does."""
        with self._changed:
            job = self._jobs.get(key)
            if job is None:
                return None
            job.running = max(0, job.running - 1)
            job.dirty.difference_update(wrote)
            if job.running:
                return None
            news, job.dirty = bool(job.dirty), set()
            if not ok:
                return None
            delay = SETTLE if news else again_after
            if delay is not None:
                self._schedule(key, job, delay)
            return delay

    def get(self, limit: Callable[[Hashable], int], timeout: float | None = None) -> list[str] | None:
        """Wait for a job that is to be nudged and return it, alone; [] after `timeout` seconds, None once closed.

        It counts as asked from then on; `failed` says that the annotation could not be written.
        """
        deadline = None if timeout is None else self._clock() + timeout
        with self._changed:
            while not self._closed:
                now = self._clock()
                due = self._first_due()
                if due <= now:
                    _, key = heapq.heappop(self._heap)
                    job = self._jobs[key]
                    job.due, job.asked = math.inf, now
                    return [key]
                if deadline is not None and now >= deadline:
                    return []
                ends = min(due, math.inf if deadline is None else deadline)
                self._changed.wait(None if ends == math.inf else ends - now)
            return None

    def failed(self, key: str) -> float | None:
        """The annotation could not be written; return the seconds until another try, None where none is needed."""
        with self._changed:
            job = self._jobs.get(key)
            if job is None or job.running:
                return None
            job.asked = -math.inf
            delay = min(_FIRST_PAUSE * 2**job.problems, _LONGEST_PAUSE)
            job.problems = min(job.problems + 1, 20)
            self._schedule(key, job, delay)
            return delay

    def close(self) -> None:
        """Let every thread that waits in `take` return."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _schedule(self, key: str, job: _Job, delay: float) -> None:
        due = self._clock() + delay
        if due < job.due:
            job.due = due
            heapq.heappush(self._heap, (due, key))
            self._changed.notify_all()

    def _first_due(self) -> float:
        """When the next nudge is due; entries that an earlier time, a run or an end has replaced are dropped."""
        while self._heap:
            due, key = self._heap[0]
            job = self._jobs.get(key)
            if job is not None and job.due == due:
                return due
            heapq.heappop(self._heap)
        return math.inf
