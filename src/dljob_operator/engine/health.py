"""The endpoint of the probes: /healthz returns 200 while all threads run, /readyz after all kinds were listed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dljob_operator.engine.http_server import HttpServer, Request, Response, parse_address


class Health:
    """Serves at `address` ("host:port", ":port" for all interfaces) from `start` on."""

    def __init__(self, address: str) -> None:
        self.ready = threading.Event()
        self.checks: list[Callable[[], str]] = []
        """Each returns what no longer works, "" if all does."""
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
        """The first of the checks' problems, "" if there is none. A restart helps: Kubernetes does that."""
        return next(filter(None, (check() for check in self.checks)), "")

    def not_ready(self) -> str:
        return "" if self.ready.is_set() else "not ready yet"

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()
