"""Reads commit subjects from the file that git passes to a commit-msg hook, or from a range of commits."""

from __future__ import annotations

import subprocess
from pathlib import Path

SCISSORS = "# ------------------------ >8 ------------------------"


class RangeError(Exception):
    """git does not know a revision; the message is git's error message."""


def from_message(text: str, comment: str = "#") -> str:
    """The subject of a message file: its first line that git will keep."""
    for line in text.splitlines():
        if line == SCISSORS:
            break
        if line.strip() and not line.startswith(comment):
            return line
    return ""


def from_range(repository: Path, base: str, head: str) -> list[tuple[str, str]]:
    """Abbreviated hash and subject of the commits between the merge base with ``base`` and ``head``, oldest first.

    Merge commits are skipped: the forge writes their subjects.
    """
    command = ["git", "log", "--no-merges", "--reverse", "--format=%h%x09%s", f"{base}..{head}", "--"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RangeError(done.stderr.strip())
    pairs = (line.partition("\t") for line in done.stdout.splitlines())
    return [(commit, subject) for commit, _, subject in pairs]
