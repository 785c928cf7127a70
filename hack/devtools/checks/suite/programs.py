"""Starts programs, writes their output to logs, and stops those that still run when the suite is interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from devtools.paths import ROOT

PYTHONPATH = ":".join(str(ROOT / folder) for folder in ("hack", "src", "client/src"))
GRACE = 60.0
"""Seconds that interrupted programs get to clean up."""


class Programs:
    """The programs of one run of the suite. ``environment`` is added to this process's; logs are in ``folder``."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._running: set[int] = set()
        self._stopping = False
        self._lock = threading.Lock()

    def log(self, name: str) -> Path:
        return self._folder / f"{name.replace(' ', '-')}.log"

    def run(
        self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None, nice: int = 0
    ) -> tuple[int, float]:
        """Run a program until it exits; returns its exit status and processor seconds (with waited-for children)."""
        with self.log(name).open("ab") as output:
            process = subprocess.Popen(
                ["nice", "-n", str(nice), *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": PYTHONPATH, **self._environment, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        with self._lock:
            self._running.add(process.pid)
            if self._stopping:
                _signal(process.pid, signal.SIGINT)
        _, status, used = os.wait4(process.pid, 0)
        with self._lock:
            self._running.discard(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, used.ru_utime + used.ru_stime

    def stop(self) -> None:
        """Send SIGINT to all running programs, and to each that is started from now on; SIGKILL after GRACE seconds.

        pytest tears down its fixtures, and with them the tests' operators, only on SIGINT.
        """
        self._stopping = True
        for pid in [*self._running]:
            _signal(pid, signal.SIGINT)
        timer = threading.Timer(GRACE, self._kill)
        timer.daemon = True
        timer.start()

    def _kill(self) -> None:
        with self._lock:
            for pid in self._running if self._stopping else ():
                _signal(pid, signal.SIGKILL)

    def resume(self) -> None:
        """Allow new programs again, for the cleanup."""
        self._stopping = False


def _signal(pid: int, number: signal.Signals) -> None:
    """Send a signal to the process group of a program that was started here."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)
