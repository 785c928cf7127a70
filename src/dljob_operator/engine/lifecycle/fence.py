"""Keep a former leader from starting runs, in the moments until its process ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter

from dljob_operator.runner import RunEnding, RunRequest, RunResult, TaskFailure


class Runs(Protocol):
    """The part of RunnerClient that starts and ends runs."""

    @property
    def changes(self) -> ChangeCounter: ...

    def prepare(self, target: str) -> None: ...

    def run(self, request: RunRequest) -> RunResult: ...

    def results(self, request: RunRequest) -> Iterator[RunResult]: ...

    def close(self) -> None: ...


class FencedRunner:
    """Starts the runs of `runner` while `leads` returns True; later ones end as CANCELLED."""

    def __init__(self, runner: Runs, leads: Callable[[], bool]) -> None:
        self._runner = runner
        self._leads = leads

    @property
    def changes(self) -> ChangeCounter:
        return self._runner.changes

    def prepare(self, target: str) -> None:
        self._runner.prepare(target)

    def run(self, request: RunRequest) -> RunResult:
        return self._runner.run(request) if self._leads() else _not_started()

    def results(self, request: RunRequest) -> Iterator[RunResult]:
        if self._leads():
            yield from self._runner.results(request)
        else:
            yield _not_started()

    def close(self) -> None:
        self._runner.close()


def _not_started() -> RunResult:
    return RunResult(RunEnding.CANCELLED, (TaskFailure("", "this operator is no longer the leader"),))
