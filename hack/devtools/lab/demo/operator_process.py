"""The operator as a child process, as ``make run`` starts it. Used by the demo and by the end-to-end tests."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from devtools.paths import ROOT

READY = "ready:"
"""The log line that the operator prints when its caches have synced."""


class OperatorError(Exception):
    """The operator did not start, or exited; the message contains the tail of its log."""


class OperatorProcess:
    """A context manager that starts the operator, and on exit stops it and waits for it."""

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        arguments: Sequence[str] = ("--install-crds",),
        *,
        command: Sequence[str] = (),
        ready: str = READY,
    ) -> None:
        """``arguments`` are those of ``dljob-operator run``; ``command`` replaces all of it, and ``ready`` the line."""
        self._kubeconfig = kubeconfig
        self._log = log
        self._command = list(command) or [sys.executable, "-m", "dljob_operator", "run", *arguments]
        self._ready = ready
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._process: subprocess.Popen[str] | None = None
        self._copier: threading.Thread | None = None
        self.ready_line = ""

    def __enter__(self) -> OperatorProcess:
        environment = {**os.environ, "KUBECONFIG": str(self._kubeconfig)}
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        self._process = subprocess.Popen(
            self._command,
            env=environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._copier = threading.Thread(target=self._copy, args=(self._process.stdout,), daemon=True)
        self._copier.start()
        return self

    def _copy(self, output: IO[str]) -> None:
        with self._log.open("w", encoding="utf-8") as log:
            for line in output:
                log.write(line)
                log.flush()
                self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def wait_ready(self, timeout: float = 60.0) -> None:
        """Wait until all watches have synced. Raises :class:`OperatorError` with the tail of the log."""
        seen: list[str] = []
        while True:
            try:
                line = self._lines.get(timeout=timeout)
            except queue.Empty:
                raise OperatorError(f"the operator was not ready after {timeout:.0f} s:\n" + tail(seen)) from None
            if line is None:
                raise OperatorError("the operator exited during startup:\n" + tail(seen))
            seen.append(line)
            if self._ready in line:
                self.ready_line = line[line.index(self._ready) :]
                return

    def kill(self) -> None:
        """Kill the operator and its child processes, to simulate a crash."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                self.kill()
        if self._copier is not None:
            self._copier.join(timeout=10)


def tail(lines: Sequence[str], count: int = 20) -> str:
    return "\n".join(lines[-count:])
