"""Processes: started so that they outlive this one, identified, ended; and locks between them.

A process is identified by pid *and* start time, so that a reused pid is never signalled. Why not psutil: `settings`
stands on this module, and runs before any package is installed. psutil also compares the time and then signals the pid,
where a pidfd names one process, and its times are floats that a change of the clock moves.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import select
import signal
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devtools.testbed.base.errors import ClusterError

PROC = Path("/proc")
RECORD = "process.json"
"""The file in which `devtools.testbed.background` records a process."""
RECORDED_GRACE = 40.0
"""Seconds for the end of such a process. An operator waits up to 30 s for pending Ansible runs when it stops."""


# ---- identity


@dataclass(frozen=True)
class ProcessId:
    """A pid and the clock tick (since boot) at which the process started: together unique until the next boot."""

    pid: int
    start: int
    boot: str = ""
    """The boot id: after a reboot both pid and tick may recur."""


@dataclass(frozen=True)
class Stat:
    """What this module needs of /proc/<pid>/stat."""

    state: str
    parent: int
    start: int


def parse_stat(text: str) -> Stat:
    """The command name, in parentheses, may contain any character."""
    fields = text.rpartition(")")[2].split()
    return Stat(fields[0], int(fields[1]), int(fields[19]))


def _stat(pid: int) -> Stat | None:
    try:
        return parse_stat((PROC / str(pid) / "stat").read_text())
    except OSError:
        return None


def boot_id() -> str:
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def identify(pid: int) -> ProcessId | None:
    """The identity of a running process; None if no process has this pid."""
    found = _stat(pid)
    return None if found is None else ProcessId(pid, found.start, boot_id())


def alive(process: ProcessId | None) -> bool:
    if process is None or (process.boot and process.boot != boot_id()):
        return False
    found = _stat(process.pid)
    return found is not None and found.start == process.start and found.state not in "ZX"


def children(pid: int) -> list[ProcessId]:
    """The running children of ``pid``, oldest first."""
    pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    found = [(each, of) for each in pids if (of := _stat(each)) and of.parent == pid]
    return sorted((ProcessId(each, of.start, boot_id()) for each, of in found), key=lambda p: (p.start, p.pid))


# ---- start and end


def start(
    command: Sequence[str | Path],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = "/",
    pass_fds: Collection[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a process in a session of its own, which outlives this one; its output is appended to ``log``."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [str(part) for part in command], env=env, cwd=cwd, pass_fds=pass_fds, stdin=subprocess.DEVNULL,
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip


def identity(child: subprocess.Popen[bytes]) -> ProcessId:
    """The identity of a child that was not waited for, so that it exists, be it as a zombie."""
    found = identify(child.pid)
    assert found is not None
    return found


@contextlib.contextmanager
def _pidfd(process: ProcessId) -> Iterator[int | None]:
    """A descriptor of exactly this process, None if it has exited."""
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        # checked once it is open: the descriptor could be one of a new process with this pid
        yield fd if alive(process) else None
    finally:
        os.close(fd)


def wait_end(process: ProcessId, timeout: float) -> bool:
    """Wait until the process has exited; returns False if it is still running after ``timeout`` seconds."""
    with _pidfd(process) as fd:
        return fd is None or bool(select.select([fd], [], [], timeout)[0])


def send(process: ProcessId, number: signal.Signals) -> None:
    """Signal exactly this process or none."""
    with _pidfd(process) as fd, contextlib.suppress(ProcessLookupError):
        if fd is not None:
            signal.pidfd_send_signal(fd, number)


def end(process: ProcessId | None, grace: float) -> None:
    """Send SIGTERM, then SIGKILL after ``grace`` seconds; returns when the process has exited."""
    if process is None or not alive(process):
        return
    send(process, signal.SIGTERM)
    if not wait_end(process, grace):
        send(process, signal.SIGKILL)
        wait_end(process, 30)


def write_record(record: Path, process: ProcessId) -> None:
    record.write_text(json.dumps(dataclasses.asdict(process)), encoding="utf-8")


def read_record(record: Path) -> ProcessId | None:
    """The process of a record; None if the file is missing."""
    try:
        return ProcessId(**json.loads(record.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def end_recorded(record: Path) -> bool:
    """End the process of a record and remove the record; returns False if it was not running."""
    process = read_record(record)
    was_alive = alive(process)
    end(process, RECORDED_GRACE)
    record.unlink(missing_ok=True)
    return was_alive


# ---- locks, which the kernel releases when their holder exits


@contextlib.contextmanager
def locked(file: Path, waiting: str = "") -> Iterator[None]:
    """Hold the lock ``file``, whose folder is created; prints ``waiting`` if another process holds it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting:
                print(waiting, flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def exclusive(file: Path, what: str) -> Iterator[None]:
    """Hold the lock ``file``. Raises ClusterError if another process does, which runs ``what``."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ClusterError(f"{what} is in progress", "wait for its end") from None
        yield
