"""Reconciles of several jobs of one kind, a few at a time."""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, Resource, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parsed import Frameworks
from ansible_collections.dljob.operator.plugins.module_utils.shared import rbac
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan

PARALLEL_JOBS = 4
"""Jobs of a batch that are reconciled at once: each waits for the API server most of the time. Their pods are written
several at a time besides."""

LONGEST = 10.0
"""Seconds after which no further job of a batch begins. Where an admission webhook does not answer, each write takes
its timeout, by default as long, and 25 jobs of one namespace would occupy a worker for minutes."""


class _Turns:
    """The order in which the threads of a batch begin its jobs. While jobs of several namespaces wait, those of one
    leave a thread to the others."""

    def __init__(self, jobs: Sequence[Resource]) -> None:
        self._waiting = list(enumerate(jobs))
        self._running: Counter[str] = Counter()
        self._lock = threading.Lock()

    def begin(self) -> tuple[int, Resource]:
        """Remove and return the next job, with its place in the batch."""
        with self._lock:
            has_turn = (at for at, (_, resource) in enumerate(self._waiting) if self._may_begin(resource))
            place, resource = self._waiting.pop(next(has_turn, 0))
            self._running[_namespace_of(resource)] += 1
            return place, resource

    def _may_begin(self, resource: Resource) -> bool:
        return self._running[_namespace_of(resource)] < PARALLEL_JOBS - 1

    def end(self, resource: Resource) -> None:
        with self._lock:
            self._running[_namespace_of(resource)] -= 1


def _namespace_of(resource: Resource) -> str:
    return str(resource["metadata"].get("namespace", ""))


def reconcile_all(
    context: Context,
    jobs: Sequence[Resource],
    frameworks: Frameworks,
    every: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[list[Outcome], bool]]:
    """The outcomes of ``jobs``, and whether they are the last: all at once, or ``every`` so many seconds what there is.

    An engine requeues a job only after its outcome, so a small job must not wait for one of a thousand replicas in the
    same batch. With ``every``, which the engine of a long-lived worker sets, the jobs that have not begun after
    ``LONGEST`` seconds of the ``clock`` are postponed, so that others have their turn.
    """
    if len(jobs) == 1:
        yield [_reconcile(context, jobs[0], frameworks)], True
        return
    last_begin = None if every is None else clock() + LONGEST
    turns = _Turns(jobs)

    def reconcile_next() -> tuple[int, Outcome]:
        place, resource = turns.begin()
        try:
            if last_begin is not None and clock() > last_begin:
                return place, Outcome(resource, Plan(), True, False, "", None, is_postponed=True)
            return place, _reconcile(context, resource, frameworks)
        finally:
            turns.end(resource)

    with ThreadPoolExecutor(min(PARALLEL_JOBS, len(jobs))) as pool:
        pending = [pool.submit(reconcile_next) for _ in jobs]
        try:
            while pending:
                done = wait(pending, every).done
                is_last = len(done) == len(pending)
                if done:
                    found = sorted((future.result() for future in done), key=lambda one: one[0])
                    yield [outcome for _, outcome in found], is_last
                pending = [future for future in pending if future not in done]
        finally:
            for future in pending:  # where one of them has raised an unexpected error
                future.cancel()


def _reconcile(context: Context, resource: Resource, frameworks: Frameworks) -> Outcome:
    began = time.monotonic()
    try:
        outcome = reconcile(context, resource, frameworks)
    except ApiError as e:
        outcome = Outcome(resource, Plan(), False, False, rbac.explain_denial(e.summary), None)
    except Exception as e:
        # a defect of ours must not cost the other jobs of the batch their reconcile
        frame = traceback.extract_tb(e.__traceback__)[-1]
        message = f"internal error: {type(e).__name__}: {e} ({frame.filename}:{frame.lineno})"
        outcome = Outcome(resource, Plan(), False, False, message, None)
    return replace(outcome, seconds=time.monotonic() - began)
