"""Jobs that run with two processes in turn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from devtools.soak.run import in_turn


class Run:
    """Stands in for a Soak; it has run one job before."""

    def __init__(self, name: str, order: list[str]) -> None:
        self.progress = SimpleNamespace(alone=["earlier"])
        self._name, self._order = name, order

    def run_one(self, job: Any, limit: float) -> None:
        self._order.append(f"{self._name}{job}")
        self.progress.alone.append(job)


def test_each_job_runs_in_both_and_neither_is_always_the_first() -> None:
    order: list[str] = []
    runs: Any = (Run("new ", order), Run("aged ", order))
    assert in_turn(runs, iter(range(9)), 3, 60.0) == [[0, 1, 2], [0, 1, 2]]  # type: ignore[arg-type]
    assert order == ["aged 0", "new 0", "new 1", "aged 1", "aged 2", "new 2"]
