"""CPU time and memory of a peer's process tree, including exited children."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PERIOD = 0.5
_PPID, _UTIME = 1, 11  # indices of the fields after the command name in /proc/<pid>/stat


def parse_stat(text: str) -> tuple[int, int]:
    """(parent, clock ticks: own and of children that were waited for) from ``/proc/<pid>/stat``."""
    fields = text[text.rindex(")") + 2 :].split()
    return int(fields[_PPID]), sum(map(int, fields[_UTIME : _UTIME + 4]))


def tree(root: int) -> dict[int, int]:
    """Clock ticks of ``root`` and its descendants, by process id."""
    found: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                found[int(entry.name)] = parse_stat((entry / "stat").read_text())
    members = {root} if root in found else set()
    while more := {pid for pid, (parent, _) in found.items() if parent in members} - members:
        members |= more
    return {pid: found[pid][1] for pid in members}


def cpu_seconds(root: int) -> float:
    return sum(tree(root).values()) / _TICK


def memory(root: int) -> int:
    """Proportional set size of the processes in bytes: shared pages count once."""
    total = 0
    for pid in tree(root):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


class PeakMemory:
    """Samples the memory every half second. A context manager."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._done = threading.Event()
        self.bytes = memory(root)
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.bytes = max(self.bytes, memory(self._root))

    def _sample(self) -> None:
        while not self._done.wait(_PERIOD):
            self.bytes = max(self.bytes, memory(self._root))
