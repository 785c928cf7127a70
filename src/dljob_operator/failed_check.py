"""What a check of the probes has found: a text with the details for the log, and one for everyone who can ask."""

from __future__ import annotations


class FailedCheck(str):
    """The details, as a text. They may name jobs, namespaces and the API server.

    The checks return it as a plain text, "" for none, so that one without details of its own can return any string.
    """

    __slots__ = ("check",)

    check: str
    """A constant text that says which check has failed. The probes answer it without authentication."""

    def __new__(cls, check: str, details: str) -> FailedCheck:
        made = super().__new__(cls, details)
        made.check = check
        return made
