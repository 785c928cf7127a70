"""The endpoint of the probes: /healthz returns 200 while all threads run, /readyz after all kinds were listed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Health:
    """Serves at `address` ("host:port", ":port" for all interfaces) from `start` on."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        if not port.isdigit():
            raise ValueError(f"--health-probe-bind-address: {address!r} has no port; write :6789 or 127.0.0.1:6789")
        self.ready = threading.Event()
        self.checks: list[Callable[[], str]] = []
        """Each returns what no longer works, "" if all does."""
        health = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                problems = {"/healthz": health.problem, "/readyz": health.not_ready}
                found = problems.get(self.path.partition("?")[0])
                if found is None:
                    status, text = 404, "/healthz or /readyz"
                else:
                    text = found()
                    status, text = (503, text) if text else (200, "ok")
                body = f"{text}\n".encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass  # probes every few seconds would fill the log

        self._server = ThreadingHTTPServer((host, int(port)), Handler)
        self._server.daemon_threads = True

    def problem(self) -> str:
        """The first of the checks' problems, "" if there is none. A restart helps: Kubernetes does that."""
        return next(filter(None, (check() for check in self.checks)), "")

    def not_ready(self) -> str:
        return "" if self.ready.is_set() else "not ready yet"

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
