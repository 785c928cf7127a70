"""A peer as a process of the host, like the embedded engine: with the same machine, connection and account."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devtools.lab.bench import processes
from devtools.paths import ROOT

PROGRAMS = ROOT / "benchmarks" / "programs"


class PeerFailed(Exception):
    """A peer did not start, or exited; the message contains the tail of its log."""


@dataclass(frozen=True)
class Limits:
    """Limits on a slow peer's workloads, which leave time for the others. Counts of jobs or pods."""

    singles: int | None = None
    jobs: int | None = None
    replicas: int | None = None
    heavy: bool = True
    """Whether it runs the workloads with ``Sizes.most`` jobs."""
    lasting: bool = True
    """Whether it also runs the workloads after their creation: changes, a restart, finished jobs."""
    timeout: float = 300.0
    """Seconds after which a workload is stopped and its progress is reported."""


@dataclass(frozen=True)
class Peer:
    """``command`` gets the kubeconfig and a scratch folder; ``ready`` is a text that the ready peer prints."""

    name: str
    title: str
    command: Callable[[Path, Path], Sequence[str]]
    ready: str
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    prepare: Callable[[Path], None] | None = None
    """Called once before the peer is started for the first time, with the administrator's kubeconfig."""
    clean_up: Callable[[], None] | None = None
    """Called once at the end of the run: removes from this machine what ``prepare`` has created."""
    version: Callable[[], str] = lambda: ""
    folder: Path = ROOT
    """Its working directory."""
    reports_running: bool = True
    rests_after: float = 0.0
    """Seconds without work after which it has freed what it needs no longer; the idle phase begins then."""
    kinds: tuple[str, ...] = ()
    """The kinds of kubeflow.org/v1 that it reconciles besides MXJob."""
    reconciles: str = ""
    """The metric that counts its reconciles of MXJobs, as a regular expression; a peer with a metric has the flag
    ``--metrics-bind-address``."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def total(metrics: str, pattern: str) -> float:
    """The sum of all samples in a Prometheus text whose name and labels match ``pattern``."""
    return sum(float(line.rpartition(" ")[2]) for line in metrics.splitlines() if re.match(pattern, line))


class Running:
    """A started peer. A context manager that on exit stops the peer and all its processes."""

    def __init__(self, peer: Peer, kubeconfig: Path, scratch: Path) -> None:
        self._peer = peer
        self._log = scratch / f"{peer.name}.log"
        self._ready = threading.Event()
        self._ended = threading.Event()
        self._unwritten = ""
        # a peer must not see DLJOB_CLUSTER_DIR and similar variables
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "K8S_AUTH_KUBECONFIG": str(kubeconfig)}
        self._temporary = Path(tempfile.mkdtemp(prefix="tmp-", dir=scratch))
        environment["TMPDIR"] = str(self._temporary)
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        self._metrics = f"127.0.0.1:{free_port()}" if peer.reconciles else ""
        more = [f"--metrics-bind-address={self._metrics}"] if self._metrics else []
        self._process = subprocess.Popen(
            [*peer.command(kubeconfig, scratch), *more],
            env={**environment, **peer.environment},
            cwd=peer.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._copy, daemon=True)
        self._reader.start()

    def _copy(self) -> None:
        assert self._process.stdout is not None
        wanted = self._peer.ready.encode()
        with self._log.open("ab", buffering=0) as log:
            for line in self._process.stdout:
                try:
                    log.write(line)
                except OSError as error:
                    # A full disk, for instance. Read on: a peer stops at its next line once its pipe is full.
                    self._unwritten = str(error)
                if wanted in line:
                    self._ready.set()
        self._ended.set()
        self._ready.set()

    @property
    def pid(self) -> int:
        return self._process.pid

    def reconciles(self) -> float:
        """Number of reconciles since its start; 0 if the peer does not count them."""
        if not self._metrics:
            return 0.0
        try:
            with urllib.request.urlopen(f"http://{self._metrics}/metrics", timeout=30) as answer:
                return total(answer.read().decode(), self._peer.reconciles)
        except OSError as error:
            raise PeerFailed(
                f"{self._peer.name} does not serve its reconcile metric: {error}\n{self.log_end()}"
            ) from error

    def wait_ready(self, timeout: float = 120.0) -> None:
        in_time = self._ready.wait(timeout)
        if self._ended.is_set():
            raise PeerFailed(f"{self._peer.name} exited before it was ready:\n{self.log_end()}")
        if not in_time:
            raise PeerFailed(f"{self._peer.name} was not ready within {timeout:.0f} s:\n{self.log_end()}")

    def check(self) -> None:
        if self._process.poll() is not None:
            raise PeerFailed(f"{self._peer.name} exited with {self._process.returncode}:\n{self.log_end()}")
        if self._unwritten:
            raise PeerFailed(f"the log of {self._peer.name} cannot be written: {self._unwritten}")

    def log_end(self, lines: int = 15) -> str:
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        started = processes.tree(self._process.pid)
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
        for pid in started:  # processes that the peer left, such as an ansible-runner in its own session
            if pid in processes.tree(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(10)
        shutil.rmtree(self._temporary, ignore_errors=True)
