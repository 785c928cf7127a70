"""One line of a log, and its place in time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

Moment = tuple[str, str]
"""A time that sorts: UTC to the second, and the fraction to nine digits."""
EARLIEST: Moment = ("", "")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a container's log."""

    time: str
    """When the container wrote it, RFC 3339 with nanoseconds, in the node's zone; "" where the node does not tell."""
    replica: str
    """``worker-0``; with several containers of a pod ``worker-0/sidecar``."""
    pod: str
    container: str
    data: bytes
    """As the container wrote it, without the line's end. One of more than 1 MiB comes in pieces."""

    @property
    def text(self) -> str:
        """The line; what is no UTF-8 is replaced."""
        return self.data.decode(errors="replace")


def split(raw: bytes) -> tuple[str, bytes]:
    """The time and the text of a line of ``?timestamps=true``; "" and all of it where it begins with no time."""
    head, space, rest = raw.partition(b" ")
    if not 20 <= len(head) <= 35 or head[10:11] != b"T" or not head[:4].isdigit():
        return "", raw
    return head.decode("ascii", "replace"), rest if space else b""


def moment(time: str) -> Moment:
    """When that was; ``EARLIEST`` for what is no time.

    Text alone does not sort: a fraction may be of any length, and a node has a zone of its own.
    """
    seconds, point, rest = time.partition(".")
    if point:
        digits = len(rest) - len(rest.lstrip("0123456789"))
        fraction, zone = rest[:digits], rest[digits:]
    else:
        seconds, fraction, zone = time[:19], "", time[19:]
    if zone != "Z":
        try:
            there = datetime.fromisoformat(seconds + zone)
        except ValueError:
            return EARLIEST
        seconds = there.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return seconds, fraction.ljust(9, "0")


def after(lines: Iterable[LogLine], time: str) -> Iterator[LogLine]:
    """The lines that were written after ``time``; what has no time of its own goes with the line before it."""
    limit = moment(time)
    is_later: dict[tuple[str, str], bool] = {}
    for line in lines:
        key = line.pod, line.container
        if line.time:
            is_later[key] = moment(line.time) > limit
        if is_later.get(key, True):
            yield line


_REMOVED = b"unable to retrieve container logs for "


def is_removed(raw: bytes) -> bool:
    """Whether the node says, in place of a log, that it has removed it: the kubelet answers so with status 200."""
    return raw.startswith(_REMOVED)
