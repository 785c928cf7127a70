"""Lines of the operator's log that must never occur."""

from __future__ import annotations

from pathlib import Path

_SHOWN = 2000
_UNEXPECTED = (
    ("Traceback (most recent call last)", "a traceback"),
    ("exception=", "a traceback"),
    (" CRITICAL", "a critical error"),
    ("run output", "a run that crashed or timed out"),
    ("thread has ended", "a dead thread"),
    ("Exception ignored", "an ignored exception"),
    ("[WARNING]", "a warning of Ansible"),
    ("[ERROR]", "an error of Ansible"),
)
_TRANSIENT = ("not found", "NotFound", "AlreadyExists", "Conflict", "the object has been modified", "being deleted")
"""Errors of a reconcile whose job was deleted or changed meanwhile."""


def unexpected(line: str) -> str:
    """What a line of the operator's log shows that must never occur, "" for an ordinary line.

    Values in the log come from the fuzzed objects too, but only escaped and quoted; the texts here are ones that no
    object contains.
    """
    for text, what in _UNEXPECTED:
        if text in line:
            return what
    if "reconcile failed" in line and not any(text in line for text in _TRANSIENT):
        return "a failed reconcile"
    if " ERROR " in line and "reconcile failed" not in line:
        return "an error"
    return ""


class Log:
    """The lines that the operator has added to its log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def unexpected(self) -> list[tuple[str, str]]:
        """(what, line) of the new lines that must never occur."""
        data = self._path.read_bytes()[self._read :]
        data = data[: data.rfind(b"\n") + 1]  # the last line may be incomplete
        self._read += len(data)
        lines = data.decode(errors="replace").splitlines()
        return [(what, line[:_SHOWN]) for line in lines if (what := unexpected(line))]
