"""The one exception that a user of the tool gets to see."""

from __future__ import annotations


class ClusterError(Exception):
    """Something the tool cannot get past: what is wrong, and what would fix it.

    ``problem`` names the thing that is missing or failed; ``fix`` is a command or a change that helps ("" if unknown).
    """

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.problem}\n  fix: {self.fix}" if self.fix else self.problem
