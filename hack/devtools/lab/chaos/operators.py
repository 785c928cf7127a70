"""The operators of a run: processes that are killed, stopped and started again, as a Deployment's pods are.

Every process of an operator has a variable in its environment that names the start it belongs to. By it this module
finds the processes that a killed one has left, and signals no others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from devtools.lab.chaos.clock.sitecustomize import OFFSET_FILE
from devtools.lab.chaos.supervised import Supervised
from devtools.testbed.base import process
from devtools.testbed.operator import READY, RUN, metrics

MARK = "DLJOB_CHAOS_START"
_RESTART_SECONDS = 0.5
_ORPHAN_SECONDS = 20.0
"""How long processes of a killed operator may run: they end when they notice that their parent has gone."""
CLOCK = Path(__file__).resolve().parent / "clock"


def processes_started() -> list[int]:
    """The processes that this process has started as operators, and those that these have started."""
    return processes_with(f"{os.getpid()}-", exactly=False)


def processes_with(mark: str, *, exactly: bool = True) -> list[int]:
    """The processes whose environment has the variable MARK with this value, or one that begins with it."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in process.PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                values = (entry / "environ").read_bytes().split(b"\0")
                if wanted in values or (not exactly and any(value.startswith(wanted) for value in values)):
                    found.append(int(entry.name))
    return found


def role_of(pid: int, main: int, parents: dict[int, int]) -> str:
    """Which of PROCESSES a process is, "" for one whose parent has gone. Pure."""
    if pid == main:
        return "main"
    parent = parents.get(pid, 0)
    if parent == main:
        return "fork server"
    return "worker" if parents.get(parent, 0) == main else ""


class Operator:
    """One operator, started again whenever it exits. A context manager that on exit ends all its processes."""

    def __init__(self, name: str, kubeconfig: Path, folder: Path, arguments: Sequence[str], metrics: int) -> None:
        self.name = name
        self.log = folder / f"operator-{name}.log"
        self.orphans: list[str] = []
        """Descriptions of the processes that outlived their operator."""
        self._kubeconfig = kubeconfig
        self._clock = folder / f"clock-{name}"
        self._clock.unlink(missing_ok=True)
        self._prefix = f"{os.getpid()}-{time.monotonic_ns()}-{name}"
        self._metrics = f"127.0.0.1:{metrics}"
        command = [*RUN, *arguments, f"--metrics-bind-address={self._metrics}"]
        self._supervised = Supervised(command, self.log, _RESTART_SECONDS, self._environment, self._exited)
        self._checks: list[threading.Thread] = []

    def __enter__(self) -> Operator:
        self._supervised.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        self._supervised.end(40)
        for pid in processes_with(f"{self._prefix}-", exactly=False):
            _signal(pid, signal.SIGKILL)
        for check in self._checks:
            check.join(_ORPHAN_SECONDS + 5)

    def _environment(self, start: int) -> dict[str, str]:
        return {
            **os.environ,
            "KUBECONFIG": str(self._kubeconfig),
            MARK: self.mark(start),
            OFFSET_FILE: str(self._clock),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(CLOCK), os.environ.get("PYTHONPATH")))),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }

    @property
    def starts(self) -> int:
        return self._supervised.starts

    def mark(self, start: int) -> str:
        """The value of MARK in the environment of all processes of this start, counted from 0."""
        return f"{self._prefix}-{start}"

    def wait_ready(self, timeout: float = 180.0) -> None:
        """Wait until a process of this operator has written that it is ready. Raises TimeoutError."""
        deadline = time.monotonic() + timeout
        while not self.log.exists() or READY not in self.log.read_text(errors="replace"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the operator was not ready after {timeout:.0f} s: see {self.log}")
            time.sleep(0.2)

    def kill(self, role: str) -> str:
        """SIGKILL a process of this role, the main one if there is no such process; returns what it killed."""
        main = self._supervised.process
        if main is None or not self._supervised.is_running:
            return ""
        parents = {pid: parent for pid in self._pids() if (parent := _parent(pid))}
        found = [pid for pid in parents if role_of(pid, main.pid, parents) == role]
        target, hit = (max(found), role) if found else (main.pid, "main")
        _signal(target, signal.SIGKILL)
        return hit

    def stop(self) -> bool:
        """SIGSTOP all processes, as a suspended machine does. Whether there were any."""
        pids = self._pids() if self._supervised.is_running else []
        for pid in pids:
            _signal(pid, signal.SIGSTOP)
        return bool(pids)

    def resume(self) -> None:
        """SIGCONT all processes, also those of an earlier start, which could not end while they were stopped."""
        for pid in processes_with(f"{self._prefix}-", exactly=False):
            _signal(pid, signal.SIGCONT)

    def set_clock(self, seconds: float) -> None:
        """Let the wall clock of all processes, also of later starts, be ahead by so many seconds, or behind."""
        partial = self._clock.with_suffix(".partial")
        partial.write_text(f"{seconds}")
        partial.replace(self._clock)

    def metrics(self) -> str:
        """The text of its metrics, "" while it does not serve them."""
        try:
            return metrics(self._metrics)
        except OSError:
            return ""

    def _pids(self) -> list[int]:
        return processes_with(self.mark(self.starts - 1)) if self.starts else []

    def _exited(self, start: int) -> None:
        check = threading.Thread(target=self._check_orphans, args=(self.mark(start),), daemon=True)
        check.start()
        self._checks.append(check)

    def _check_orphans(self, mark: str) -> None:
        """Record the processes of an ended operator that go on, and kill them."""
        deadline = time.monotonic() + _ORPHAN_SECONDS
        while (left := processes_with(mark)) and time.monotonic() < deadline:
            time.sleep(0.5)
        for pid in left:
            with contextlib.suppress(OSError):
                if not self._supervised.ending:
                    self.orphans.append(f"operator {self.name}: process {pid} ({_describe(pid)})")
            _signal(pid, signal.SIGKILL)


def _describe(pid: int) -> str:
    """The command of a process without the folder of its program, and its run state: T for a stopped one."""
    program, *arguments = (process.PROC / str(pid) / "cmdline").read_text().rstrip("\0").split("\0")
    state = process.parse_stat((process.PROC / str(pid) / "stat").read_text()).state
    return f"{' '.join([Path(program).name, *arguments])}, state {state}"


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _parent(pid: int) -> int:
    try:
        return process.parse_stat((process.PROC / str(pid) / "stat").read_text()).parent
    except OSError:
        return 0
