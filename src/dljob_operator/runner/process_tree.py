"""Kill a process and all its descendants, including those in other sessions, such as Ansible's task processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Process:
    """A process. Its start time (clock ticks since boot) distinguishes it from a later process with the same id."""

    pid: int
    started: int


def tree(pid: int) -> tuple[Process, ...]:
    """Return the process `pid` and its descendants, the root first; empty if it does not exist."""
    children: dict[int, list[Process]] = {}
    root = None
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if not entry.name.isdigit() or (found := _read(int(entry.name))) is None:
            continue
        process, parent = found
        children.setdefault(parent, []).append(process)
        if process.pid == pid:
            root = process
    found_all = [root] if root else []
    for process in found_all:
        found_all += children.get(process.pid, [])
    return tuple(found_all)


RUN_DIRECTORY = "DLJOB_RUN_DIR"
"""The environment variable that names the scratch directory of the run that started a program."""


def started_below(directory: Path) -> tuple[Process, ...]:
    """Return the processes of the run with the scratch directory `directory`, or of runs with directories below it.

    They are found by their environment, because the kernel reparents a process whose parent has ended.
    """
    mark = f"{RUN_DIRECTORY}={directory}".encode()
    marks = (mark + b"/", mark + b"\0")
    found = []
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        with contextlib.suppress(OSError):
            environ = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
            if any(each in environ for each in marks) and (read := _read(int(entry.name))):
                found.append(read[0])
    return tuple(found)


def kill(processes: Iterable[Process]) -> None:
    """Send SIGKILL to those of `processes` that are still running."""
    for process in processes:
        found = _read(process.pid)
        if found is not None and found[0] == process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent, the process `parent`, ends (on Linux)."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the call
            os.kill(os.getpid(), signal.SIGKILL)


def children_die_with_this_process() -> None:
    """Call `die_with` in each process that this one forks from now on, but not in their own children."""
    this = os.getpid()

    def bind() -> None:
        if os.getppid() == this:
            die_with(this)

    os.register_at_fork(after_in_child=bind)


def kill_group(pid: int, signum: int) -> None:
    """Send `signum` to the process group `pid`, if it still exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signum)


def _read(pid: int) -> tuple[Process, int] | None:
    """Return the process and the id of its parent."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name in brackets may contain any character; after it come state (field 3), parent (4) ... start time (22).
    fields = stat[stat.rindex(b")") + 2 :].split()
    return Process(pid, int(fields[19])), int(fields[1])
