"""Jobs that two processes run in turn."""

from __future__ import annotations

from typing import Any

from devtools.lab.soak.in_turn import in_turn


class Run:
    """Stands in for a Soak."""

    def __init__(self, name: str, order: list[str]) -> None:
        self._name, self._order = name, order

    def run_many(self, jobs: Any, in_flight: int, limit: float, apart: bool) -> list[str]:
        assert (in_flight, limit, apart) == (40, 60.0, True)
        self._order.append(f"{self._name} {jobs}")
        return [f"{self._name}{job}" for job in jobs]


def test_each_block_runs_in_both_and_neither_is_always_the_first() -> None:
    order: list[str] = []
    runs: Any = (Run("young", order), Run("aged", order))
    blocks: Any = iter(["ab", "c", "d"])
    young, aged = in_turn(runs, blocks, 40, 60.0)
    assert (young, aged) == (["younga", "youngb", "youngc", "youngd"], ["ageda", "agedb", "agedc", "agedd"])
    assert order == ["aged ab", "young ab", "young c", "aged c", "aged d", "young d"]
