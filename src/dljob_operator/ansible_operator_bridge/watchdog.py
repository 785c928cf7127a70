"""End ansible-operator and this process when a part of the bridge no longer works, so that the kubelet restarts both.

Under ansible-operator the probes are its own, which it also answers while the bridge is stuck and no run ends. So this
process does itself what the kubelet does where the liveness probe of the embedded engine fails.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from dljob_operator import logs

_LOG = logging.getLogger(__name__)


class Child(Protocol):
    """The part of Popen that ends the process. A process that has ended is left alone."""

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


@dataclass(frozen=True)
class WatchdogTimes:
    """Those of the liveness probe in `deploy/`, and of the grace period there, in seconds."""

    interval: float = 20.0
    failures: int = 3
    """Checks in succession that fail."""
    child: float = 30.0
    """Until ansible-operator, which was asked to end, is killed."""
    last: float = 15.0
    """After that until this process ends without having stopped its threads: one of them may be what is stuck."""


class Watchdog:
    """A context manager. From `start` on, a thread asks the `checks`, each of which returns "" or what is wrong."""

    def __init__(
        self,
        checks: Sequence[Callable[[], str]],
        times: WatchdogTimes = WatchdogTimes(),
        exit_process: Callable[[int], object] = os._exit,
    ) -> None:
        self.problem = ""
        """Why the child was ended, "" if it was not."""
        self._checks = checks
        self._times = times
        self._exit_process = exit_process
        self._done = threading.Event()

    def __enter__(self) -> Watchdog:
        return self

    def start(self, child: Child) -> None:
        threading.Thread(target=self._run, args=[child], name="watchdog", daemon=True).start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()

    def _run(self, child: Child) -> None:
        self.problem = self._wait_for_problem()
        if not self.problem:
            return
        _LOG.error("the bridge no longer works; ending ansible-operator", extra=logs.fields(error=self.problem))
        child.terminate()
        if not self._done.wait(self._times.child):
            child.kill()
        if not self._done.wait(self._times.last):
            _LOG.error("the threads of the bridge did not end; exiting without them")
            self._exit_process(1)

    def _wait_for_problem(self) -> str:
        """Return what all of so many checks have failed with, at last; "" once there is nothing to watch."""
        failed = 0
        while not self._done.wait(self._times.interval):
            problem = self._check()
            failed = failed + 1 if problem else 0
            if failed >= self._times.failures:
                return problem
            if problem:
                _LOG.warning("a check of the bridge failed", extra=logs.fields(error=problem, failures=failed))
        return ""

    def _check(self) -> str:
        try:
            return next(filter(None, (check() for check in self._checks)), "")
        except Exception as error:  # as at /healthz, where it is no 200 either
            _LOG.exception("a check of the bridge failed with an internal error")
            return f"{type(error).__name__}: {error}"
