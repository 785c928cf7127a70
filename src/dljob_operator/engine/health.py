"""The endpoint of the probes: /healthz returns 200 unless a restart may help, /readyz while the operator can work.

A standby of a leader election is ready too, since a rolling update waits for that before it ends the leader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dljob_operator.engine.http_server import HttpServer, Request, Response, parse_address


class Health:
    """Serves at `address` ("host:port", ":port" for all interfaces) from `start` on."""

    def __init__(self, address: str) -> None:
        self.checks: list[Callable[[], str]] = []
        """Each returns what a restart may mend, "" if nothing."""
        self.ready_checks: list[Callable[[], str]] = []
        """Each returns what the operator still waits for, "" if nothing. Without a check it is not ready."""
        where = parse_address("--health-probe-bind-address", address, ":6789 or 127.0.0.1:6789")
        self._server = HttpServer(where, self._respond)

    def _respond(self, request: Request) -> Response:
        problems = {"/healthz": self.problem, "/readyz": self.not_ready}
        found = problems.get(request.path)
        if found is None:
            return Response(404, b"/healthz or /readyz\n")
        text = found()
        return Response(503 if text else 200, f"{text or 'ok'}\n".encode())

    def problem(self) -> str:
        """The first of the checks' problems, "" if there is none."""
        return _first(self.checks)

    def not_ready(self) -> str:
        """What the operator waits for first, "" if nothing."""
        return _first(self.ready_checks) if self.ready_checks else "the operator is starting"

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()


def _first(checks: Sequence[Callable[[], str]]) -> str:
    return next(filter(None, (check() for check in checks)), "")
