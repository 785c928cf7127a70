"""Brings the lines of many logs into the order of time, in bounded memory."""

from __future__ import annotations

import heapq
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO

from dljob.logs.line import EARLIEST, Moment, moment, split

ROOM = 16 * 1024
"""Bytes of a log that wait in memory, twice; what waits beyond them lies in a file."""


class Merge:
    """Lines are added as they arrive, in any order of the logs, and given in the order of time.

    A log's own order stays, also where its clock steps back.
    """

    def __init__(self, make_file: Callable[[], IO[bytes]] = tempfile.TemporaryFile) -> None:
        self._spill = _Spill(make_file)
        self._waiting: dict[int, _Waiting] = {}
        self._heap: list[tuple[Moment, int]] = []
        self._missing: set[int] = set()
        """Logs that have not ended, and no line of which waits: one of them may have the next line."""

    def begin(self, number: int) -> None:
        """Expect lines of this log. Of equal times the lower number comes first."""
        self._waiting[number] = _Waiting(self._spill)
        self._missing.add(number)

    def add(self, number: int, raw: bytes) -> None:
        """A line, with its time."""
        self._waiting[number].add(raw)
        if number in self._missing:
            self._missing.discard(number)
            self._push(number)

    def end(self, number: int) -> None:
        """The log has no more lines."""
        self._waiting[number].ended = True
        self._missing.discard(number)

    def ready(self) -> Iterator[tuple[int, str, bytes]]:
        """Number, time and text of each line that no other can precede."""
        while self._heap and not self._missing:
            _, number = heapq.heappop(self._heap)
            waiting = self._waiting[number]
            time, text = waiting.take()
            if waiting:
                self._push(number)
            elif not waiting.ended:
                self._missing.add(number)
            yield number, time, text

    def close(self) -> None:
        """Remove the file."""
        self._spill.close()

    def _push(self, number: int) -> None:
        heapq.heappush(self._heap, (self._waiting[number].next_moment(), number))


class Arrival:
    """In place of :class:`Merge`, for lines that are given as they arrive."""

    def __init__(self) -> None:
        self._lines: deque[tuple[int, bytes]] = deque()

    def begin(self, number: int) -> None:
        """Lines of this log may come."""

    def add(self, number: int, raw: bytes) -> None:
        """A line, with its time."""
        self._lines.append((number, raw))

    def end(self, number: int) -> None:
        """The log has no more lines."""

    def ready(self) -> Iterator[tuple[int, str, bytes]]:
        """Number, time and text of each line."""
        while self._lines:
            number, raw = self._lines.popleft()
            yield number, *split(raw)

    def close(self) -> None:
        """There is no file."""


class _Waiting:
    """The lines of one log: the first ones, then pieces of the file, then the last ones."""

    def __init__(self, spill: _Spill) -> None:
        self.ended = False
        self._spill = spill
        self._first: deque[bytes] = deque()
        self._pieces: deque[tuple[int, int]] = deque()
        self._last: list[bytes] = []
        self._first_size = self._last_size = 0
        self._latest = EARLIEST

    def __bool__(self) -> bool:
        return bool(self._first)

    def add(self, raw: bytes) -> None:
        if not self._pieces and not self._last and self._first_size < ROOM:
            self._first.append(raw)
            self._first_size += len(raw)
            return
        self._last.append(raw)
        self._last_size += len(raw)
        if self._last_size >= ROOM:
            self._pieces.append(self._spill.write(b"\n".join(self._last)))
            self._last, self._last_size = [], 0

    def next_moment(self) -> Moment:
        """When the first line was written, but never before one that was taken."""
        self._latest = max(self._latest, moment(split(self._first[0])[0]))
        return self._latest

    def take(self) -> tuple[str, bytes]:
        raw = self._first.popleft()
        self._first_size -= len(raw)
        if not self._first:
            if self._pieces:
                self._first.extend(self._spill.read(*self._pieces.popleft()).split(b"\n"))
            else:
                self._first.extend(self._last)
                self._last, self._last_size = [], 0
            self._first_size = sum(map(len, self._first))
        return split(raw)


class _Spill:
    """A file without a name, made when it is first needed."""

    def __init__(self, make_file: Callable[[], IO[bytes]]) -> None:
        self._make_file = make_file
        self._file: IO[bytes] | None = None
        self._end = 0

    def write(self, data: bytes) -> tuple[int, int]:
        """Append; returns where it is, and its length."""
        if self._file is None:
            self._file = self._make_file()
        self._file.seek(self._end)
        self._file.write(data)
        self._end += len(data)
        return self._end - len(data), len(data)

    def read(self, start: int, length: int) -> bytes:
        assert self._file is not None
        self._file.seek(start)
        return self._file.read(length)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
