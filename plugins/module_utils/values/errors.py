"""The errors of invalid input: an invalid job, and an invalid framework declaration."""

from __future__ import annotations


class InvalidJob(ValueError):
    """The job's spec is invalid. A retry does not help before the user edits the spec.

    ``problems`` holds one sentence per error, which names the field and the fix.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class InvalidFramework(ValueError):
    """A role's framework declaration is invalid. The author of the role must fix it."""
