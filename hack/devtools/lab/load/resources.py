"""Memory, file descriptors, processes and threads of the operator, from /proc."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from devtools.lab.bench import processes

_PROC = Path("/proc")


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


def sizes(smaps_rollup: str) -> tuple[int, int]:
    """(RSS, PSS) in bytes from the text of ``/proc/<pid>/smaps_rollup``."""
    found = {"Rss:": 0, "Pss:": 0}
    for line in smaps_rollup.splitlines():
        fields = line.split()
        if fields and fields[0] in found:
            found[fields[0]] = int(fields[1]) * 1024
    return found["Rss:"], found["Pss:"]


def use_of(root: int) -> Use:
    """What ``root`` and its descendants use now; without those that end meanwhile."""
    found = []
    for pid in sorted(processes.tree(root), key=lambda pid: (pid != root, pid)):
        folder = _PROC / str(pid)
        with contextlib.suppress(OSError):
            rss, pss = sizes((folder / "smaps_rollup").read_text())
            descriptors, threads = (sum(1 for _ in (folder / name).iterdir()) for name in ("fd", "task"))
            found.append(ProcessUse(pid, rss, pss, descriptors, threads))
    return Use(tuple(found))
