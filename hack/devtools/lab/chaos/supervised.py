"""A program that is started again whenever it exits, as a Deployment's pod or a system service is."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from devtools.paths import ROOT


class Supervised:
    """``environment`` and ``exited`` get the number of the start, counted from 0. ``pause`` is in seconds."""

    def __init__(
        self, command: Sequence[str], log: Path, pause: float,
        environment: Callable[[int], Mapping[str, str]] = lambda start: os.environ,
        exited: Callable[[int], None] = lambda start: None,
    ) -> None:  # fmt: skip
        self.starts = 0
        self.process: subprocess.Popen[bytes] | None = None
        """The last one that was started."""
        self.ending = False
        self._command = command
        self._log = log
        self._environment = environment
        self._exited = exited
        self._pause = pause
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name=log.stem, daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._changed.wait(30)
        self._changed.clear()

    def end(self, seconds: float) -> None:
        """SIGTERM, and after so many seconds SIGKILL."""
        self.ending = True
        self._changed.set()
        self.signal(signal.SIGTERM)
        if not self.wait(seconds):
            self.signal(signal.SIGKILL)
        if self._thread.is_alive():
            self._thread.join(20)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)  # does nothing to a process that has ended

    def wait(self, seconds: float) -> bool:
        """Whether the process has ended within so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self.process is not None:
                self.process.wait(seconds)
        return not self.is_running

    def _supervise(self) -> None:
        with self._log.open("ab") as log:
            while not self.ending:
                self.process = subprocess.Popen(
                    self._command, env=self._environment(self.starts), cwd=ROOT, stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
                self.starts += 1
                if self.starts == 1:
                    self._changed.set()
                code = self.process.wait()
                log.write(f"--- start {self.starts - 1} exited with {code}\n".encode())
                log.flush()
                self._exited(self.starts - 1)
                self._changed.wait(self._pause)
