"""The operator, or one of its peers, as a child process with a log."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

from devtools.paths import ROOT
from devtools.testbed import usage

READY = "ready:"
"""The log line that the operator prints when its caches have synced."""
QUEUE = r"dljob_queue_jobs "
JOBS = r"dljob_jobs\{"
"""Two of its metrics, as regular expressions."""
RUN = (sys.executable, "-m", "dljob_operator", "run")
ANSIBLE_OPERATOR = "DLJOB_ANSIBLE_OPERATOR"
"""The environment variable with the path of a real ansible-operator, for tests and the benchmark."""
BRIDGE_READY = "Starting workers"
"""What that prints when it is ready."""
_GRACE = 40.0
"""Seconds for its end: an operator waits up to 30 s for pending Ansible runs when it stops."""
_TIMEOUT = 30.0
"""Seconds for an answer of a probe: Kubernetes' default is one second, but this machine is not a loaded node's."""


class OperatorError(Exception):
    """The operator did not start, or exited; the message contains the tail of its log."""


class OperatorProcess:
    """A context manager that starts the operator, and on exit ends it with all processes that it has started."""

    def __init__(
        self,
        kubeconfig: Path,
        log: Path,
        arguments: Sequence[str] = ("--install-crds",),
        *,
        command: Sequence[str] = (),
        ready: str = READY,
        environment: Mapping[str, str] | None = None,
        folder: Path = ROOT,
        name: str = "the operator",
        keeps_log: bool = False,
    ) -> None:
        """``arguments`` are those of ``dljob-operator run``; ``command`` replaces all of it, and ``ready`` the line.

        ``environment`` has further variables, and ``folder`` is the working directory. ``keeps_log`` continues the log.
        """
        self.ready_line = ""
        self._command = list(command) or [*RUN, *arguments]
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "K8S_AUTH_KUBECONFIG": str(kubeconfig),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **(environment or {}),
        }
        self._log, self._mode = log, "ab" if keeps_log else "wb"
        self._folder, self.name, self._text = folder, name, ready
        self._ready, self._ended = threading.Event(), threading.Event()
        self._unwritten = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._copier: threading.Thread | None = None

    def __enter__(self) -> Self:
        log = self._log.open(self._mode, buffering=0)
        self._process = subprocess.Popen(
            self._command, env=self._environment, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        self._copier = threading.Thread(target=self._copy, args=(self._process, log), daemon=True)
        self._copier.start()
        return self

    def __exit__(self, *_: object) -> None:
        process = self._started
        left = usage.tree(process.pid) if process.poll() is None else {}  # else another may have the id
        if left:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
        for pid in left:  # also one in a session of its own, such as an ansible-runner of a peer
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        if self._copier is not None:
            self._copier.join(10)

    def _copy(self, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        assert process.stdout is not None
        with log:
            for line in process.stdout:
                try:
                    log.write(line)
                except OSError as error:
                    # A full disk, for instance. Read on: a process stops at its next line once its pipe is full.
                    self._unwritten = str(error)
                if not self._ready.is_set() and self._text.encode() in line:
                    text = line.decode(errors="replace").rstrip("\n")
                    self.ready_line = text[text.index(self._text) :]
                    self._ready.set()
        self._ended.set()
        self._ready.set()

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired."""
        return self._started.wait(timeout)

    def wait_ready(self, timeout: float = 120.0) -> None:
        """Wait until all watches have synced. Raises :class:`OperatorError` with the tail of the log."""
        in_time = self._ready.wait(timeout)
        if self._ended.is_set() and not self.ready_line:
            raise OperatorError(f"{self.name} exited before it was ready:\n{self.log_end()}")
        if not in_time:
            raise OperatorError(f"{self.name} was not ready after {timeout:.0f} s:\n{self.log_end()}")

    def check(self) -> None:
        """Raises :class:`OperatorError` where the process has ended, or its log cannot be written."""
        if not self.is_running:
            raise OperatorError(f"{self.name} exited with {self._started.returncode}:\n{self.log_end()}")
        if self._unwritten:
            raise OperatorError(f"the log of {self.name} cannot be written: {self._unwritten}")

    def log_end(self, lines: int = 20) -> str:
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def kill(self) -> None:
        """Kill the operator and its child processes, to simulate a crash."""
        os.killpg(self.pid, signal.SIGKILL)
        self._started.wait()


class ProbedOperator(OperatorProcess):
    """The operator with its probes and metrics, in a new ``folder/operator.log``; the body runs when it is ready."""

    def __init__(self, kubeconfig: Path, folder: Path, arguments: Sequence[str] = ()) -> None:
        self._probes, self._metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.log = folder / "operator.log"
        addresses = (f"--health-probe-bind-address={self._probes}", f"--metrics-bind-address={self._metrics}")
        super().__init__(kubeconfig, self.log, (*addresses, *arguments))

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self.wait_ready(300)
        except BaseException:
            self.__exit__()
            raise
        return self

    def problem(self) -> str:
        """What a probe of Kubernetes would report now, "" if the operator is ready and all its threads run."""
        for path in ("/readyz", "/healthz"):
            try:
                with urllib.request.urlopen(f"http://{self._probes}{path}", timeout=_TIMEOUT):
                    pass
            except urllib.error.HTTPError as error:
                return f"{path} returned {error.code}: {error.read().decode(errors='replace').strip()}"
            except OSError as error:
                return f"{path} does not answer: {error}"
        return ""

    def gauge(self, pattern: str) -> float:
        """The sum of the metrics that match the regular expression; 0 if the operator does not answer."""
        try:
            return total(metrics(self._metrics), pattern)
        except OSError:
            return 0.0


def bridge_command(binary: str, shim: Path) -> tuple[str, ...]:
    """The bridge around that ansible-operator, with the compiled shim as in the image."""
    return sys.executable, str(Path(__file__).with_name("ansible_operator.py")), binary, "--shim", str(shim)


def free_port(host: str = "127.0.0.1") -> int:
    with socket.create_server((host, 0)) as server:
        return int(server.getsockname()[1])


def metrics(address: str) -> str:
    """The Prometheus text that is served at this address. Raises OSError."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=_TIMEOUT) as answer:
        return str(answer.read().decode())


def total(text: str, pattern: str) -> float:
    """The sum of all samples in a Prometheus text whose name and labels match ``pattern``."""
    return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if re.match(pattern, line))
