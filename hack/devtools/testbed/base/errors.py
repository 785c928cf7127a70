"""The exception that the tool reports to its user."""

from __future__ import annotations


class ClusterError(Exception):
    """A problem that stops the tool, with its fix.

    ``problem`` names what is missing or has failed; ``fix`` is a command or a change that helps ("" if unknown).
    """

    def __init__(self, problem: str, fix: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.problem}\n  fix: {self.fix}" if self.fix else self.problem
