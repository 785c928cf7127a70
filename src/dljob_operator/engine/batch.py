"""A run for several jobs, of which each has its outcome as soon as the run reports it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter

from dljob_operator.engine.cache.predicates import uid_of
from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.outcome import JobOutcome, outcomes
from dljob_operator.runner import RunRequest, RunResult


class BatchRunner(Protocol):
    """The part of RunnerClient that runs batches."""

    @property
    def changes(self) -> ChangeCounter: ...

    def results(self, request: RunRequest) -> Iterator[RunResult]: ...


@dataclass(frozen=True)
class Reported:
    """The jobs that one result of the run reports, each with its outcome; `result` may be partial."""

    jobs: Sequence[tuple[Object, JobOutcome]]
    result: RunResult


@contextmanager
def run_batch(runner: BatchRunner, request: RunRequest, resources: Sequence[Object]) -> Iterator[Iterator[Reported]]:
    """Run `request` for the jobs `resources`, and give an iterator over what it reports, in the end on each of them.

    The context ends with the run, also after an error: until then the run writes for jobs without an outcome.
    """
    results = runner.results(request)
    try:
        yield _reports(results, resources)
    finally:
        for _ in results:
            pass


def _reports(results: Iterator[RunResult], resources: Sequence[Object]) -> Iterator[Reported]:
    unreported = {uid_of(resource): resource for resource in resources}
    for result in results:
        job_outcomes = outcomes(result, list(unreported), shared=len(resources) > 1)
        yield Reported([(unreported.pop(uid), outcome) for uid, outcome in job_outcomes.items()], result)
