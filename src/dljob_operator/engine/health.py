"""The endpoint of the probes: /healthz returns 200 while the process runs, /readyz after all kinds were listed."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Health:
    """Serves at `address` ("host:port", ":port" for all interfaces) from `start` on."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        if not port.isdigit():
            raise ValueError(f"--health-probe-bind-address: {address!r} has no port; write :6789 or 127.0.0.1:6789")
        self.ready = threading.Event()
        ready = self.ready

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                known = {"/healthz": True, "/readyz": ready.is_set()}
                found = self.path.partition("?")[0]
                status = 404 if found not in known else 200 if known[found] else 503
                body = {200: b"ok\n", 404: b"/healthz or /readyz\n", 503: b"not ready yet\n"}[status]
                self.send_response(status)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass  # probes every few seconds would fill the log

        self._server = ThreadingHTTPServer((host, int(port)), Handler)
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
