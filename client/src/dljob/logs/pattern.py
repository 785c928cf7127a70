"""Finds a percentage in the lines of a log, by a tenant's regular expression. Pure.

RE2 evaluates it, in a time that grows with the text alone: with Python's ``re``, ``(a+)+$`` takes hours for one line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LONGEST = 512
"""Characters of a pattern."""
_MEMORY = 64 * 1024
"""Bytes of a compiled pattern: so that the largest one takes a second for 64 KiB of text."""
_LONGEST_NUMBER = 20


class NoProgress(Exception):
    """Why a log does not tell the progress, as a part of a sentence."""


class Pattern:
    """A regular expression in RE2's syntax, with a group ``percent``, or with ``done`` and ``total``.

    Raises NoProgress for a text that is none, and without the package of RE2.
    """

    def __init__(self, text: str) -> None:
        try:
            import re2  # here: an extra of the package, and few jobs have a pattern
        except ImportError:
            raise NoProgress("its pattern needs RE2: pip install 'dljob[progress]'") from None
        if len(text) > LONGEST:
            raise NoProgress(f"its pattern has more than {LONGEST} characters")
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY
        try:
            self._compiled = re2.compile(text, options=options)
        except re2.error as e:
            raise NoProgress(f"its pattern is invalid: {_words(e)}") from None
        except UnicodeError:
            raise NoProgress("its pattern is invalid: it is no text") from None
        names = set(self._compiled.groupindex)
        if not ("percent" in names or {"done", "total"} <= names):
            raise NoProgress("its pattern is invalid: it has no group percent, and not both done and total")

    def percent_in(self, lines: Sequence[str]) -> int | None:
        """The percentage in the last line that has one; ``None`` without such a line."""
        for line in reversed(lines):
            match = self._compiled.search(line) if line else None
            percent = _percent(match.groupdict()) if match else None
            if percent is not None:
                return percent
        return None


def _words(error: Exception) -> str:
    """RE2's own, which are bytes."""
    said: Any = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _percent(groups: Mapping[str, str | None]) -> int | None:
    """From the group ``percent``, or else from ``done`` and ``total``."""
    percent, done, total = (_number(groups.get(name)) for name in ("percent", "done", "total"))
    if percent is None and done is not None and total:
        percent = 100 * done / total
    return int(percent) if percent is not None and 0 <= percent <= 100 else None


def _number(text: str | None) -> float | None:
    digits = (text or "").strip()
    try:
        return float(digits) if digits[:1].isdigit() and len(digits) <= _LONGEST_NUMBER else None
    except ValueError:
        return None
