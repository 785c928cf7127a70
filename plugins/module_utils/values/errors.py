"""The two ways in which a reconcile cannot do what was asked."""

from __future__ import annotations


class InvalidJob(ValueError):
    """The job itself is wrong and stays wrong until somebody edits it: no retry helps.

    ``problems`` holds one sentence per fault, each naming the field and the fix.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class InvalidFramework(ValueError):
    """A role's framework declaration is wrong: the role's author must mend it."""
