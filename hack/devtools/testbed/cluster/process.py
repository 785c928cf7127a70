"""Processes that outlive their parent, identified by pid *and* start time, so that a reused pid is never signalled."""

from __future__ import annotations

import json
import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
RECORD = "process.json"
"""The file in which `devtools.testbed.background` records a process."""
RECORDED_GRACE = 40.0
"""Seconds for the end of such a process. An operator waits up to 30 s for pending Ansible runs when it stops."""


@dataclass(frozen=True)
class ProcessId:
    """A pid and the clock tick (since boot) at which the process started: together unique until the next boot."""

    pid: int
    start: int
    boot: str = ""
    """The boot id: after a reboot both pid and tick may recur."""


def parse_start(stat: str) -> int:
    """Start tick from the text of /proc/<pid>/stat. The command name, in parentheses, may contain any character."""
    return int(stat.rpartition(")")[2].split()[19])


def parse_parent(stat: str) -> int:
    return int(stat.rpartition(")")[2].split()[1])


def parse_run_state(stat: str) -> str:
    return stat.rpartition(")")[2].split()[0]


def _stat(pid: int) -> str | None:
    try:
        return (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None


def boot_id() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> ProcessId | None:
    """The identity of a running process; None if no process has this pid."""
    stat = _stat(pid)
    return None if stat is None else ProcessId(pid, parse_start(stat), boot_id())


def alive(process: ProcessId | None) -> bool:
    if process is None or (process.boot and process.boot != boot_id()):
        return False
    stat = _stat(process.pid)
    return stat is not None and parse_start(stat) == process.start and parse_run_state(stat) not in "ZX"


def read_record(record: Path) -> ProcessId | None:
    """The process in a file that `devtools.testbed.background` has written; None if the file is missing."""
    try:
        return ProcessId(**json.loads(record.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def children(pid: int) -> list[ProcessId]:
    """The running children of ``pid``, oldest first."""
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))) and parse_parent(stat) == pid:
            found.append(ProcessId(int(entry.name), parse_start(stat), boot_id()))
    return sorted(found, key=lambda p: (p.start, p.pid))


def wait_end(process: ProcessId, timeout: float) -> bool:
    """Wait until the process has exited; returns False if it is still running after ``timeout`` seconds."""
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        # open before the check below: opened after it, the descriptor could refer to a new process with this pid
        if not alive(process):
            return True
        ready, _, _ = select.select([fd], [], [], timeout)
        return bool(ready)
    finally:
        os.close(fd)


def send(process: ProcessId, number: signal.Signals) -> None:
    """Signal exactly this process or none: open a pidfd first, then compare the start time."""
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if alive(process):
            signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)


def end(process: ProcessId | None, grace: float) -> None:
    """Send SIGTERM, then SIGKILL after ``grace`` seconds; returns when the process has exited."""
    if process is None or not alive(process):
        return
    send(process, signal.SIGTERM)
    if not wait_end(process, grace):
        send(process, signal.SIGKILL)
        wait_end(process, 30)


def end_recorded(record: Path) -> bool:
    """End the process of a record and remove the record; returns False if it was not running."""
    process = read_record(record)
    was_alive = alive(process)
    end(process, RECORDED_GRACE)
    record.unlink(missing_ok=True)
    return was_alive
