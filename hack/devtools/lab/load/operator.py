"""One operator process with its probes and metrics, as the benchmark starts it."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from devtools.lab.bench.peers.base import Peer, Running, free_port, total

_TIMEOUT = 30.0
"""Seconds for an answer of a probe: Kubernetes' default is one second, but this machine is not a loaded node's."""
QUEUE = r"dljob_queue_jobs "
JOBS = r"dljob_jobs\{"


class Operator:
    """A context manager: the body runs when the operator is ready. Its log is ``folder/operator.log``.

    Raises bench.peers.base.PeerFailed, with the end of the log, where it does not become ready.
    """

    def __init__(self, kubeconfig: Path, folder: Path, arguments: Sequence[str] = ()) -> None:
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._probes, self._metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self._peer = Peer(
            name="operator",
            title="this operator",
            command=lambda kubeconfig, scratch: [
                sys.executable, "-m", "dljob_operator", "run",
                f"--health-probe-bind-address={self._probes}", f"--metrics-bind-address={self._metrics}", *arguments,
            ],
            ready="ready:",
        )  # fmt: skip
        self.log = folder / "operator.log"
        self._running: Running | None = None

    def __enter__(self) -> Operator:
        self.log.unlink(missing_ok=True)
        self._running = Running(self._peer, self._kubeconfig, self._folder)
        try:
            self._running.wait_ready(300)
        except BaseException:
            self._running.__exit__()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None:
            self._running.__exit__()

    @property
    def pid(self) -> int:
        assert self._running is not None
        return self._running.pid

    def check(self) -> None:
        """Raises bench.peers.base.PeerFailed where the process has ended, or its log cannot be written."""
        assert self._running is not None
        self._running.check()

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
            with urllib.request.urlopen(f"http://{self._metrics}/metrics", timeout=_TIMEOUT) as answer:
                return total(answer.read().decode(), pattern)
        except OSError:
            return 0.0
