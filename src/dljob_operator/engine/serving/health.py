"""The endpoint of the probes: /healthz returns 200 unless a restart may help, /readyz while the operator can work.

A standby of a leader election is ready too, since a rolling update waits for that before it ends the leader.

Everyone who reaches the port can ask, so an answer names only the check that has failed. What it has found, which may
name jobs and the API server, is in the log.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from dljob_operator import logs
from dljob_operator.engine.serving.http_server import HttpRequest, HttpResponse, HttpServer, parse_address
from dljob_operator.failed_check import FailedCheck

_LOG = logging.getLogger(__name__)
_STARTING = FailedCheck("the operator is starting", "the operator is starting")
_UNNAMED = "a check fails"


class Health:
    """Serves at `address` ("host:port", ":port" for all interfaces) from `start` on; "" disables it."""

    def __init__(self, address: str) -> None:
        self.checks: list[Callable[[], str]] = []
        """Each returns what a restart may mend, "" if nothing. The name of the check is that of a `FailedCheck`."""
        self.ready_checks: list[Callable[[], str]] = []
        """Each returns what the operator still waits for, "" if nothing. Without a check it is not ready."""
        self.server: HttpServer | None = None
        if address:
            where = parse_address("--health-probe-bind-address", address, ":6789 or 127.0.0.1:6789")
            self.server = HttpServer(where, self._respond)
        self._lock = threading.Lock()
        self._said: dict[str, str] = {"/healthz": ""}  # the last answer of each probe
        self._passed = {"/healthz"}  # what has passed: that a starting operator is not ready yet is no warning

    def _respond(self, request: HttpRequest) -> HttpResponse:
        problems = {"/healthz": self.problem, "/readyz": self.not_ready}
        found = problems.get(request.path)
        if found is None:
            return HttpResponse(404, b"/healthz or /readyz\n")
        problem = found()
        check = problem.check if isinstance(problem, FailedCheck) else problem and _UNNAMED
        self._log(request.path, check, problem)
        return (
            HttpResponse(503, f"{check}; the operator's log says more\n".encode())
            if check
            else HttpResponse(200, b"ok\n")
        )

    def _log(self, path: str, check: str, details: str) -> None:
        """Log what a probe says now, unless it has said so before. The details change from one probe to the next."""
        with self._lock:
            if self._said.get(path) == check:
                return
            self._said[path] = check
            level = logging.WARNING if check and path in self._passed else logging.INFO
            if not check:
                self._passed.add(path)
        _LOG.log(
            level, "probe fails" if check else "probe passes", extra=logs.fields(path=path, reason=details or None)
        )

    def problem(self) -> str:
        """The first of the checks' problems, "" if there is none."""
        return _first(self.checks)

    def not_ready(self) -> str:
        """What the operator waits for first, "" if nothing."""
        return _first(self.ready_checks) if self.ready_checks else _STARTING

    @property
    def port(self) -> int:
        return self.server.port if self.server is not None else 0

    def start(self) -> None:
        if self.server is not None:
            self.server.start()

    def stop(self) -> None:
        if self.server is not None:
            self.server.stop()


def _first(checks: Sequence[Callable[[], str]]) -> str:
    return next(filter(None, (check() for check in checks)), "")
