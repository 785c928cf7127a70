"""Reconciles of several jobs of one kind, a few at a time."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import (
    Frameworks,
    Outcome,
    Resource,
    reconcile,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared import rbac
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan

PARALLEL_JOBS = 4
"""Jobs of a batch that are reconciled at once: each waits for the API server most of the time. Their pods are written
several at a time besides."""


def reconcile_all(
    context: Context, jobs: Sequence[Resource], frameworks: Frameworks, every: float | None = None
) -> Iterator[tuple[list[Outcome], bool]]:
    """The outcomes of ``jobs``, and whether they are the last: all at once, or ``every`` so many seconds what there is.

    An engine requeues a job only after its outcome, so a small job must not wait for one of a thousand replicas in the
    same batch.
    """
    if len(jobs) == 1:
        yield [_reconcile(context, jobs[0], frameworks)], True
        return
    with ThreadPoolExecutor(min(PARALLEL_JOBS, len(jobs))) as pool:
        pending = [pool.submit(_reconcile, context, job, frameworks) for job in jobs]
        try:
            while pending:
                done = wait(pending, every).done
                is_last = len(done) == len(pending)
                if done:
                    yield [future.result() for future in pending if future in done], is_last
                pending = [future for future in pending if future not in done]
        finally:
            for future in pending:  # where one of them has raised an unexpected error
                future.cancel()


def _reconcile(context: Context, job: Resource, frameworks: Frameworks) -> Outcome:
    try:
        return reconcile(context, job, frameworks)
    except ApiError as e:
        return Outcome(job, Plan(), False, False, rbac.explain_denial(e.summary), None)
    except Exception as e:
        # a defect of ours must not cost the other jobs of the batch their reconcile
        frame = traceback.extract_tb(e.__traceback__)[-1]
        message = f"internal error: {type(e).__name__}: {e} ({frame.filename}:{frame.lineno})"
        return Outcome(job, Plan(), False, False, message, None)
