"""A queue of jobs that a worker must reconcile, or whose requeue annotation makes ansible-operator do so.

It replaces the work queue of the embedded engine and gets the same events, but ansible-operator has the first run.
"Annotation" stands for both here; `controller` chooses.
The states of a job are

    unknown     no run was seen: ansible-operator will run it, and that run will see all changes so far
    idle        there is nothing to do before a known time, if any
    annotated   the annotation was written, or a run was requested; the next run will see all changes until it starts
    running     changes during the run requeue the job afterwards, except the writes of the run itself

A replica of the operator that is not the leader sees no runs, so it writes no annotations. Events come in bursts, so
an annotation waits a moment for further ones. ansible-operator retries failed runs, for which it has a backoff; the
bridge's own it learns of by an annotation.

ansible-operator runs the jobs of a kind in the order of their events, some at a time. So that the pods of new jobs come
before the statuses of others, as in the embedded engine, annotations wait while new jobs of their kind and namespace
do: of these as many come before one annotation as with full batches in `engine.ready_lines`.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from dljob_operator.ansible_operator_bridge.run_queue import Turn
from dljob_operator.engine.controller_settings import LARGEST_BATCH
from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.queue import SETTLE, NextRun
from dljob_operator.engine.queue.ready_lines import FEW, PASSED_OVER, Line
from dljob_operator.engine.queue.resource_versions import Written
from dljob_operator.engine.queue.schedule import Schedule

ANNOTATION_TIMEOUT = 60.0
"""Seconds after which an annotation without a following run counts as lost."""
NEW_JOB_TIMEOUT = 2.0
"""Seconds without any new job's first run after which a new job no longer holds back annotations: ansible-operator may
ignore it."""
LONGEST_HOLD = 60.0
"""Seconds for which new jobs hold back an annotation at most: more of them may come all the time."""
NEW_BEFORE_ONE = PASSED_OVER * LARGEST_BATCH // FEW
"""New jobs that come before an annotation which they hold back."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0


@dataclass
class _Burst:
    """Jobs of a flow without a run: their number, when one of them had its first run last, how many had it since the
    last annotation, and whose annotations they hold back."""

    waiting: int = 0
    first_run_at: float = -math.inf
    passed_over: int = 0
    held: dict[str, None] = field(default_factory=dict)


@dataclass
class _Job:
    running: int = 0
    annotated_at: float = -math.inf
    problems: int = 0
    held_since: float = math.inf
    flow: Flow | None = None
    next_run: NextRun = NextRun.ORDINARY
    failed: bool = False
    by_bridge: bool = False
    dirty: set[Written | None] = field(default_factory=set)


class RequeueQueue:
    """A queue for several threads. `clock` returns monotonic seconds."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, on_change: Callable[[str], object] = lambda key: None
    ) -> None:
        """`on_change` is called with the key for each change and each deletion of a job, one call at a time."""
        self._clock = clock
        self._on_change = on_change
        self._schedule = Schedule(clock)
        self._changed = self._schedule.changed
        self._jobs: dict[str, _Job] = {}
        self._new: OrderedDict[str, tuple[float, Flow]] = OrderedDict()
        """When the jobs without a run were seen first, and their flows; the oldest come first."""
        self._bursts: dict[Flow, _Burst] = {}
        """The new jobs by flow."""

    @property
    def depth(self) -> int:
        """The number of scheduled annotations."""
        with self._changed:
            return len(self._schedule)

    def add(self, key: str, flow: Flow, *, cause: Written | None = None, urgent: bool = False, owned: int = 0) -> None:
        """Handle a change. `urgent` means that the job itself changed, which ansible-operator observes too."""
        with self._changed:
            if urgent:
                self._on_change(key)
            job = self._jobs.get(key)
            if job is None and urgent:
                self._expire_new()
                if key not in self._new:
                    self._new[key] = self._clock(), flow
                    self._bursts.setdefault(flow, _Burst()).waiting += 1
            if job is not None:
                job.flow = flow
            if job is None or urgent:
                return
            if job.running:
                job.dirty.add(cause)
            elif self._clock() - job.annotated_at >= ANNOTATION_TIMEOUT:
                self._annotate_after(key, SETTLE)

    def discard(self, key: str) -> None:
        """Remove a deleted job."""
        with self._changed:
            self._on_change(key)
            self._jobs.pop(key, None)
            self._forget_new(key)
            self._schedule.discard(key)

    def request(self, key: str, *, reconciled_before: bool = False, by_bridge: bool = False) -> Turn:
        """Record that ansible-operator wants a run, or the bridge, which begins later; return when it has its turn.

        `reconciled_before` says that an earlier process may have reconciled the job: after a start all jobs seem new.
        """
        with self._changed:
            self._note_first_run(key)
            is_first = key not in self._jobs
            job = self._jobs.setdefault(key, _Job())
            is_known = by_bridge or job.failed or (is_first and reconciled_before)
            by_itself = job.annotated_at == -math.inf and not is_known
            job.annotated_at, job.by_bridge = self._clock(), by_bridge
            self._schedule.discard(key)
            may_share = job.next_run is NextRun.ORDINARY
            if by_itself:  # neither for an annotation nor to try again: a user has created or changed the job
                return Turn(Line.CHANGED, may_share)
            return Turn(Line.CONTINUING if job.next_run is NextRun.CONTINUING else Line.OWNED, may_share)

    def begin(self, key: str) -> None:
        """Record the start of a run. The caller takes the snapshot after this call."""
        with self._changed:
            self._note_first_run(key)
            job = self._jobs.setdefault(key, _Job())
            job.running += 1
            job.annotated_at, job.held_since, job.problems = -math.inf, math.inf, 0
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
            job.next_run, job.failed = next_run, not ok
            if job.running:
                return None
            news, job.dirty = bool(job.dirty), set()
            if ok:
                delay = 0.0 if next_run is NextRun.CONTINUING else SETTLE if news else again_after
            else:
                delay = 0.0 if job.by_bridge else None  # ansible-operator repeats its own runs
            if delay is not None:
                self._annotate_after(key, delay)
            return delay

    def has_failed(self, key: str) -> bool:
        """Whether the last run of the job has failed: ansible-operator must try again, which has a backoff for it."""
        with self._changed:
            job = self._jobs.get(key)
            return job is not None and job.failed

    def postponed(self, key: str) -> None:
        """Record that a run did not begin the job after all; it waits for its next turn."""
        with self._changed:
            job = self._jobs.get(key)
            if job is not None:
                job.running = max(0, job.running - 1)
                job.annotated_at = self._clock()
                if not job.running:
                    job.dirty.clear()

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
        self._expire_new()
        job, now = self._jobs[key], self._clock()
        burst = None if job.flow is None else self._bursts.get(job.flow)
        if burst is not None and job.next_run is not NextRun.CONTINUING:
            job.held_since = min(job.held_since, now)
            latest = job.held_since + LONGEST_HOLD
            if burst.passed_over < NEW_BEFORE_ONE and now < latest:
                burst.held[key] = None
                self._schedule.set(key, min(latest, now + NEW_JOB_TIMEOUT))
                return None
            burst.passed_over = 0
        job.annotated_at = now
        return [key]

    def _note_first_run(self, key: str) -> None:
        flow = self._forget_new(key)
        burst = None if flow is None else self._bursts.get(flow)
        if burst is not None:
            burst.first_run_at = self._clock()
            burst.passed_over += 1
            if burst.passed_over >= NEW_BEFORE_ONE:
                self._release(burst, 1)

    def _forget_new(self, key: str) -> Flow | None:
        """Return the flow of the job, if it was new."""
        found = self._new.pop(key, None)
        if found is None:
            return None
        burst = self._bursts[found[1]]
        burst.waiting -= 1
        if not burst.waiting:
            del self._bursts[found[1]]
            self._release(burst, len(burst.held))
        return found[1]

    def _release(self, burst: _Burst, count: int) -> None:
        for key in list(burst.held)[:count]:
            del burst.held[key]
            if self._schedule.due(key) < math.inf:
                self._schedule.set(key, self._clock())

    def _expire_new(self) -> None:
        while self._new:
            key, (seen, flow) = next(iter(self._new.items()))
            if self._clock() < max(seen, self._bursts[flow].first_run_at) + NEW_JOB_TIMEOUT:
                return
            self._forget_new(key)

    def _annotate_after(self, key: str, delay: float) -> None:
        self._schedule.set(key, min(self._schedule.due(key), self._clock() + delay))
