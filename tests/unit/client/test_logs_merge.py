"""The order of time, and what a terminal gets: pure."""

from __future__ import annotations

import io
import json
import re
from typing import IO

import pytest
from dljob.logs import LogLine, merge
from dljob.logs.line import EARLIEST, moment, split
from dljob.logs.read import Place
from dljob.logs.show import Printer, harmless
from hypothesis import given
from hypothesis import strategies as st

T = "2026-11-29T10:00:00"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (f"{T}.1Z", f"{T}.123Z"),
        (f"{T}Z", f"{T}.000000001Z"),
        (f"{T}.9Z", "2026-11-29T10:00:01Z"),
        ("2026-11-29T12:00:00.5+02:00", f"{T}.6Z"),
        ("2026-11-29T05:30:00.000000001-04:30", f"{T}.000000002Z"),
    ],
)
def test_times_sort(earlier: str, later: str) -> None:
    assert EARLIEST < moment(earlier) < moment(later)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-45T99:99:99.1+99:99", f"{T}.5nowhere"])
def test_what_is_no_time_is_the_earliest(text: str) -> None:
    assert moment(text) == EARLIEST or moment(text)[0].startswith("2026")


@pytest.mark.parametrize(
    ("raw", "time", "text"),
    [
        (f"{T}.1Z a b".encode(), f"{T}.1Z", b"a b"),
        (f"{T}Z ".encode(), f"{T}Z", b""),
        (b"no time here", "", b"no time here"),
        (
            b"unable to retrieve container logs for containerd://1",
            "",
            b"unable to retrieve container logs for containerd://1",
        ),
        (b"", "", b""),
        (b"\xff\xfe x", "", b"\xff\xfe x"),
    ],
)
def test_split(raw: bytes, time: str, text: bytes) -> None:
    assert split(raw) == (time, text)


Log = list[int]
"""The seconds at which it was written."""


@given(
    logs=st.lists(st.lists(st.integers(0, 9), max_size=8), min_size=1, max_size=5),
    order=st.randoms(use_true_random=False),
    room=st.sampled_from([1, 60, 100_000]),
)
def test_the_merged_lines_are_those_of_a_stable_sort(logs: list[Log], order: object, room: int) -> None:
    before = merge.ROOM
    merge.ROOM = room
    try:
        merged = _merged(logs, order)
    finally:
        merge.ROOM = before
    expected = []
    for number, seconds in enumerate(logs):
        latest = 0
        for place, second in enumerate(seconds):
            latest = max(latest, second)  # a clock that steps back does not change a log's own order
            expected.append((latest, number, place))
    assert merged == [(number, f"{number}.{place}".encode()) for _, number, place in sorted(expected)]


def _merged(logs: list[Log], order: object) -> list[tuple[int, bytes]]:
    arrivals = [number for number, log in enumerate(logs) for _ in range(len(log) + 1)]
    order.shuffle(arrivals)  # type: ignore[attr-defined]
    merging, places, found = merge.Merge(), [0] * len(logs), []
    for number in range(len(logs)):
        merging.begin(number)
    for number in arrivals:
        place = places[number]
        places[number] += 1
        if place == len(logs[number]):
            merging.end(number)
        else:
            merging.add(number, f"2026-11-29T10:00:{logs[number][place]:02}Z {number}.{place}".encode())
        found += [(one, text) for one, _, text in merging.ready()]
    merging.close()
    return found


def test_what_waits_lies_in_a_file() -> None:
    files: list[IO[bytes]] = []

    def make() -> IO[bytes]:
        files.append(io.BytesIO())
        return files[-1]

    merging = merge.Merge(make)
    merging.begin(0)
    merging.begin(1)
    count = 20 * merge.ROOM // 100
    for number in range(count):
        merging.add(0, f"{T}.{number:09}Z ".encode() + b"x" * 100)
    assert list(merging.ready()) == []
    waiting = merging._waiting[0]  # noqa: SLF001
    in_memory = sum(map(len, waiting._first)) + sum(map(len, waiting._last))  # noqa: SLF001
    assert in_memory < 3 * merge.ROOM
    assert len(files) == 1
    merging.end(1)
    assert len(list(merging.ready())) == count
    merging.close()
    assert files[0].closed


@given(st.lists(st.integers(0, 5), max_size=12), st.integers(0, 12))
def test_a_log_that_is_read_again_has_no_line_twice_and_lacks_none(seconds: list[int], read: int) -> None:
    times = [f"2026-11-29T10:00:0{second}.5Z" for second in sorted(seconds)]
    place = Place()
    for time in times[:read]:
        place.pass_by(time)
    place.restart()
    again = [time for time in times if time[:19] >= place.since[:19]]
    fresh = []
    for time in again:
        if not place.was_read(time):
            place.pass_by(time)
            fresh.append(time)
    assert times[:read] + fresh == times


# --- what is printed


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def line(data: bytes, replica: str = "worker-0") -> LogLine:
    return LogLine(f"{T}.1Z", replica, f"a-{replica}", "pytorch", data)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext", "plain\ttext"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07 and \x1b[2J", "\\x1b]0;title\\x07 and \\x1b[2J"),
        ("\r 10%|#   |\r100%|####|", "100%|####|"),
        ("100%\r", "100%"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
    ],
)
def test_nothing_of_a_log_acts_on_a_terminal(text: str, shown: str) -> None:
    assert harmless(text) == shown
    terminal = Terminal()
    Printer(terminal).print(line(text.encode()))
    assert terminal.getvalue() == f"worker-0 | {shown}\n"


@given(st.text())
def test_no_control_character_reaches_a_terminal(text: str) -> None:
    assert all(c.isprintable() or c == "\t" for c in harmless(text))


def test_bytes_stay_as_they_are_where_there_is_no_terminal() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "utf-8", write_through=True)
    printer = Printer(stream, timestamps=True)
    printer.print(line(b"\x1b[31m\xff"))
    Printer(stream, form="raw").print(line(b"\xff"))
    assert raw.getvalue() == f"worker-0 | {T}.1Z ".encode() + b"\x1b[31m\xff\n\xff\n"


def test_json_and_a_pattern() -> None:
    stream = io.StringIO()
    printer = Printer(stream, form="json", pattern=re.compile("loss"))
    printer.print(line(b"step 1"))
    printer.print(line(b"loss \xff"))
    assert json.loads(stream.getvalue()) == {
        "time": f"{T}.1Z",
        "replica": "worker-0",
        "pod": "a-worker-0",
        "container": "pytorch",
        "message": "loss \ufffd",
    }


def test_each_replica_has_a_color_and_all_the_same_room() -> None:
    terminal = Terminal()
    printer = Printer(terminal, colored=True)
    for replica in ("worker-10", "worker-1", "worker-10"):
        printer.print(line(b"x", replica))
    first, second, third = terminal.getvalue().splitlines()
    assert first == third == "\x1b[36mworker-10\x1b[0m | x"
    assert second == "\x1b[33mworker-1 \x1b[0m | x"
