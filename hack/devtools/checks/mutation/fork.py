"""Runs a function in a forked child with limits, and ends everything that it has started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def adopt_orphans() -> None:
    """End with the parent process, and become the parent of descendants whose own parent has ended."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forked(run: Callable[[], int], cpu: float | None = None, idle: float | None = None) -> int | None:
    """The exit status of ``run`` in a child, or ``None`` where it exceeded a limit.

    ``cpu`` are seconds of processor time, ``idle`` seconds in which it neither ran nor waited for a processor. Neither
    depends on what else runs on the machine.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            adopt_orphans()
            if cpu is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 1))
            status = run()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.__stderr__)
        finally:
            os._exit(status)
    fd = os.pidfd_open(pid)
    try:
        ended_itself = _wait(fd, pid, idle)
        if not ended_itself:
            os.kill(pid, signal.SIGKILL)
        _, ended = os.waitpid(pid, 0)
    finally:
        os.close(fd)
    end_descendants(os.getpid())
    if not ended_itself or (os.WIFSIGNALED(ended) and os.WTERMSIG(ended) in (signal.SIGXCPU, signal.SIGKILL)):
        return None
    return os.waitstatus_to_exitcode(ended)


def _wait(fd: int, pid: int, idle: float | None) -> bool:
    """Wait for the end of a process; False where it was idle for nearly all of the last ``idle`` seconds."""
    while True:
        before = _active(pid)
        ready, _, _ = select.select([fd], [], [], idle)
        if ready:
            return True
        if idle is not None and _active(pid) - before < idle / 20:
            return False


def _active(pid: int) -> float:
    """Seconds for which the threads of a process and its descendants have run or have waited for a processor."""
    total = sum(_active(child) for child in _children(pid))
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            ran, waited, _ = (task / "schedstat").read_text(encoding="ascii").split()
            total += (int(ran) + int(waited)) / 1e9
    return total


def end_descendants(pid: int) -> None:
    """Kill all descendants of a process; of this one, wait for them too: it has adopted those of ended children."""
    while found := _children(pid):
        for child in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            if pid == os.getpid():
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(child, 0)
            else:
                end_descendants(child)
        if pid != os.getpid():
            return


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]
    except OSError:
        return []
