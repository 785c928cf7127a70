"""The lines of logs as the page shows them, in bounded memory. Pure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from dljob.logs import LogLine
from dljob.logs.show import harmless
from dljob.output import printable

LONGEST = 4096
"""Characters of a line that are shown."""
MOST = 5000
"""Lines."""
ROOM = 4_000_000
"""Characters of all lines."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class Line:
    """A line, without what a browser need not have."""

    time: str
    """RFC 3339; "" where it is not known."""
    replica: str
    text: str


def shown(line: LogLine) -> Line:
    """The line, cut if it is long."""
    text = harmless(line.text)
    return Line(
        time_in(line.time), printable(line.replica), text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\u2026"
    )


def time_in(text: str) -> str:
    """The time that is the whole text; "" for another text."""
    return text if text.isascii() and _TIME.fullmatch(text) else ""


class Last:
    """The last lines: ``MOST`` of them, and no more than fit into ``ROOM``."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque(maxlen=MOST)
        self._size = 0

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines)

    def add(self, line: Line) -> None:
        """Append a line; the first ones may go."""
        if len(self._lines) == MOST:
            self._size -= len(self._lines[0].text)
        self._lines.append(line)
        self._size += len(line.text)
        while self._size > ROOM:
            self._size -= len(self._lines.popleft().text)
