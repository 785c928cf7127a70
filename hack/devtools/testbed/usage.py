"""What a process and its descendants use, from /proc: CPU time, memory, file descriptors and threads."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK")
_PERIOD = 0.5
_PPID, _UTIME = 1, 11  # indices of the fields after the command name in /proc/<pid>/stat


@dataclass(frozen=True)
class ProcessUse:
    """One process. Bytes."""

    pid: int
    rss: int
    pss: int
    descriptors: int
    threads: int


@dataclass(frozen=True)
class Use:
    """A process and its descendants, the first process first."""

    processes: tuple[ProcessUse, ...] = ()

    @property
    def pss(self) -> int:
        """Bytes; pages that the processes share count once."""
        return sum(one.pss for one in self.processes)

    @property
    def descriptors(self) -> int:
        return sum(one.descriptors for one in self.processes)

    @property
    def threads(self) -> int:
        return sum(one.threads for one in self.processes)


def parse_stat(text: str) -> tuple[int, int]:
    """(parent, clock ticks: own and of children that were waited for) from ``/proc/<pid>/stat``."""
    fields = text[text.rindex(")") + 2 :].split()
    return int(fields[_PPID]), sum(map(int, fields[_UTIME : _UTIME + 4]))


def sizes(smaps_rollup: str) -> tuple[int, int]:
    """(RSS, PSS) in bytes from the text of ``/proc/<pid>/smaps_rollup``."""
    found = {"Rss:": 0, "Pss:": 0}
    for line in smaps_rollup.splitlines():
        fields = line.split()
        if fields and fields[0] in found:
            found[fields[0]] = int(fields[1]) * 1024
    return found["Rss:"], found["Pss:"]


def tree(root: int) -> dict[int, int]:
    """Clock ticks of ``root`` and its descendants, by process id."""
    found: dict[int, tuple[int, int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                found[int(entry.name)] = parse_stat((entry / "stat").read_text())
    members = {root} if root in found else set()
    while more := {pid for pid, (parent, _) in found.items() if parent in members} - members:
        members |= more
    return {pid: found[pid][1] for pid in members}


def cpu_seconds(root: int) -> float:
    return sum(tree(root).values()) / _TICK


def use_of(root: int) -> Use:
    """What ``root`` and its descendants use now; without those that end meanwhile."""
    found = []
    for pid in sorted(tree(root), key=lambda pid: (pid != root, pid)):
        folder = _PROC / str(pid)
        with contextlib.suppress(OSError):
            rss, pss = sizes((folder / "smaps_rollup").read_text())
            descriptors, threads = (sum(1 for _ in (folder / name).iterdir()) for name in ("fd", "task"))
            found.append(ProcessUse(pid, rss, pss, descriptors, threads))
    return Use(tuple(found))


class PeakMemory:
    """Samples the proportional set size every half second, in bytes. A context manager."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._done = threading.Event()
        self.bytes = use_of(root).pss
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._take()

    def _sample(self) -> None:
        while not self._done.wait(_PERIOD):
            self._take()

    def _take(self) -> None:
        self.bytes = max(self.bytes, use_of(self._root).pss)
