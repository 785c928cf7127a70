"""Prints lines of logs: with the replica before each, as JSON, or raw."""

from __future__ import annotations

import json
import re
from typing import TextIO

from dljob.logs.line import LogLine
from dljob.output import printable

_COLORS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
"""Of replicas in turn; red is for errors."""
_COLORING = re.compile(r"\x1b\[[0-9;:]*m")


class Printer:
    """Writes lines to ``stream``. On a terminal no character of a log acts on it; elsewhere the bytes stay as they are.

    ``form`` is "", raw or json; ``pattern`` is searched in each line, and the others are left out.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        colored: bool = False,
        form: str = "",
        timestamps: bool = False,
        pattern: re.Pattern[str] | None = None,
    ) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._colored = colored
        self._form = form
        self._timestamps = timestamps
        self._pattern = pattern
        self._width = 0
        self._known: dict[str, int] = {}

    def print(self, line: LogLine) -> None:
        """Write the line, unless the pattern is not in it."""
        if self._pattern and not self._pattern.search(line.text):
            return
        if self._form == "json":
            fields = {"time": line.time, "replica": line.replica, "pod": line.pod, "container": line.container}
            self._stream.write(json.dumps({**fields, "message": line.text}) + "\n")
            return
        head = "" if self._form == "raw" else self._prefix(line.replica)
        if self._timestamps and line.time:
            head += f"{line.time} "
        if self._is_terminal:
            self._stream.write(f"{head}{harmless(line.text)}\n")
        else:
            self._stream.flush()
            self._stream.buffer.write(head.encode() + line.data + b"\n")

    def flush(self) -> None:
        self._stream.flush()

    def _prefix(self, replica: str) -> str:
        name = printable(replica)
        self._width = max(self._width, len(name))
        color = _COLORS[self._known.setdefault(name, len(self._known)) % len(_COLORS)]
        padded = name.ljust(self._width)
        return f"\x1b[{color}m{padded}\x1b[0m | " if self._colored else f"{padded} | "


def harmless(text: str) -> str:
    """A line for a terminal: without colors, with what a progress bar wrote last, and with escapes for the rest."""
    return "\t".join(map(printable, written_last(text).split("\t")))


def written_last(text: str) -> str:
    """What a terminal would show of a line in the end: without colors, and of a progress bar the last state."""
    plain = _COLORING.sub("", text)
    if "\r" not in plain:
        return plain
    return next((part for part in reversed(plain.split("\r")) if part.strip()), "")
