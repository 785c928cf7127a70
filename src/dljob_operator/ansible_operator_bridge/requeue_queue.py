"""A queue of jobs whose requeue annotation must be written, so that ansible-operator reconciles them.

It replaces the work queue of the embedded engine and gets the same events, but ansible-operator decides when to run.
The states of a job are

    unknown     no run was seen: ansible-operator will run it, and that run will see all changes so far
    idle        there is nothing to do before a known time, if any
    annotated   the annotation was written; the next run will see all changes until it starts
    running     changes during the run requeue the job afterwards, except the writes of the run itself

A replica of the operator that is not the leader sees no runs, so it writes no annotations. Events come in bursts, so
an annotation waits a moment for further ones. ansible-operator retries failed runs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from dljob_operator.engine.fair_queue import Flow
from dljob_operator.engine.queue import SETTLE, NextRun
from dljob_operator.engine.resource_versions import Written
from dljob_operator.engine.schedule import Schedule

ANNOTATION_TIMEOUT = 60.0
"""Seconds after which an annotation without a following run counts as lost."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0


@dataclass
class _Job:
    running: int = 0
    annotated_at: float = -math.inf
    problems: int = 0
    dirty: set[Written | None] = field(default_factory=set)


class RequeueQueue:
    """A queue for several threads. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._schedule = Schedule(clock)
        self._changed = self._schedule.changed
        self._jobs: dict[str, _Job] = {}

    @property
    def depth(self) -> int:
        """The number of scheduled annotations."""
        with self._changed:
            return len(self._schedule)

    def add(self, key: str, flow: Flow, *, cause: Written | None = None, urgent: bool = False, owned: int = 0) -> None:
        """Handle a change. `urgent` means that the job itself changed, which ansible-operator observes too."""
        with self._changed:
            job = self._jobs.get(key)
            if job is None or urgent:
                return
            if job.running:
                job.dirty.add(cause)
            elif self._clock() - job.annotated_at >= ANNOTATION_TIMEOUT:
                self._annotate_after(key, SETTLE)

    def discard(self, key: str) -> None:
        """Remove a deleted job."""
        with self._changed:
            self._jobs.pop(key, None)
            self._schedule.discard(key)

    def begin(self, key: str) -> None:
        """Record the start of a run. The caller takes the snapshot after this call."""
        with self._changed:
            job = self._jobs.setdefault(key, _Job())
            job.running += 1
            job.annotated_at, job.problems = -math.inf, 0
            self._schedule.discard(key)

    def done(
        self,
        key: str,
        *,
        ok: bool,
        again_after: float | None = None,
        wrote: Collection[Written] = (),
        next_run: NextRun = NextRun.ORDINARY,
    ) -> float | None:
        """Record the end of a run; return the seconds until the next annotation, None if none is scheduled."""
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
                self._annotate_after(key, delay)
            return delay

    def get(self, timeout: float | None = None) -> list[str] | None:
        """Wait for a due job and return it; [] after `timeout` seconds, None once the queue is closed.

        The job counts as annotated from then on; call `failed` if the annotation could not be written.
        """
        with self._changed:
            return self._schedule.wait(self._take, timeout)

    def failed(self, key: str) -> float | None:
        """Schedule another attempt after a failed write; return the seconds until then, None if it is not needed."""
        with self._changed:
            job = self._jobs.get(key)
            if job is None or job.running:
                return None
            job.annotated_at = -math.inf
            delay = min(_FIRST_PAUSE * 2**job.problems, _LONGEST_PAUSE)
            job.problems = min(job.problems + 1, 20)
            self._annotate_after(key, delay)
            return delay

    def close(self) -> None:
        """Make `get` return None in all threads."""
        with self._changed:
            self._schedule.close()

    def _take(self) -> list[str] | None:
        key = self._schedule.pop()
        if key is None:
            return None
        self._jobs[key].annotated_at = self._clock()
        return [key]

    def _annotate_after(self, key: str, delay: float) -> None:
        self._schedule.set(key, min(self._schedule.due(key), self._clock() + delay))
