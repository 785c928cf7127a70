"""The reverse proxy between an operator and the API server, which injects faults. Each operator has one of its own.

It listens with plain HTTP on the loopback interface, and is authenticated at the API server as the administrator.

**The model of watches.** A watch of a real API server loses no event silently: its stream ends, or the client gets
410 Gone. So a "dropped" event is one before which the stream ends (the client continues from the version before it), a
"gone" event is replaced by 410 Gone (the client lists again), a "cut" one arrives in part. Delayed events keep their
order. A duplicated event is what a client sees that continues from an older version than its last one.

**The model of requests.** Each answer that is injected is one that an API server or a load balancer gives: an error
before or after the effect, none at all, or a late one. A write whose connection has closed may take effect later, as
does one that waits in a socket's buffer. No answer lies: a creation never gets AlreadyExists for a new name.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.injector import Call, Injector
from devtools.lab.chaos.upstream import Upstream

_NOT_FORWARDED = ("connection", "host", "transfer-encoding", "content-length", "keep-alive", "accept-encoding")
_UPSTREAM_TIMEOUT = 65.0
_WATCH_TIMEOUT = 330.0  # longer than a watch that a client requests
_ERRORS = {
    "conflict": (409, "Conflict", "injected: the object has been modified"),
    "throttled": (429, "TooManyRequests", "injected: too many requests"),
    "server error": (500, "InternalError", "injected: no effect"),
    "error after write": (500, "InternalError", "injected: the write took effect"),
}
_BEFORE = ("conflict", "throttled", "server error")
_GONE = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"injected: too old resource version","reason":"Expired","code":410}}\n'
)


class _Closed(Exception):
    """The client's connection ends here."""


@dataclass(frozen=True)
class Logged:
    """One request that reached the API server."""

    at: float
    """When the proxy sent it (monotonic): before its effect, which others may see before the answer."""
    operator: str
    method: str
    path: str
    status: int


@dataclass
class Trail:
    """The requests of all operators that reached the API server. Thread-safe."""

    entries: list[Logged] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, entry: Logged) -> None:
        with self._lock:
            self.entries.append(entry)

    def writes_since(self, moment: float, namespace: str) -> list[Logged]:
        """The writes in this namespace but those of the Lease."""
        within = f"/namespaces/{namespace}/"
        with self._lock:
            return [
                entry
                for entry in self.entries
                if entry.at >= moment and entry.method != "GET" and within in entry.path and "/leases" not in entry.path
            ]


class Proxy:
    """A context manager that serves on a free port of the loopback interface."""

    def __init__(self, operator: str, upstream: Upstream, trail: Trail, injector: Injector) -> None:
        self.operator = operator
        self.upstream = upstream
        self.trail = trail
        self.injector = injector
        self.kill: Callable[[Fault], None] = lambda fault: None
        """Kills a process of the operator; the faults "kill ... write" call it."""
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._refused_until = 0.0
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._close_all()
        self._thread.join(10)

    def partition(self, seconds: float) -> None:
        """Close all connections, and new ones for ``seconds``."""
        self._refused_until = time.monotonic() + seconds
        self._close_all()

    @property
    def refuses(self) -> bool:
        return time.monotonic() < self._refused_until

    def add(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def remove(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)

    def _close_all(self) -> None:
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def write_kubeconfig(path: Path, url: str) -> None:
    """A kubeconfig without credentials: the proxy has them."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "chaos", "cluster": {"server": url}}],
        "users": [{"name": "chaos", "user": {}}],
        "contexts": [{"name": "chaos", "context": {"cluster": "chaos", "user": "chaos"}}],
        "current-context": "chaos",
    }
    path.write_text(json.dumps(document))  # JSON is valid YAML


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is what this proxy is for."""


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"proxy": proxy})


class _Handler(BaseHTTPRequestHandler):
    """One connection of the client, with one of its own to the API server."""

    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def setup(self) -> None:
        super().setup()
        self._upstream: http.client.HTTPSConnection | None = None
        # small responses must not wait for the acknowledgement of their header
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.proxy.add(self.connection)

    def finish(self) -> None:
        self.proxy.remove(self.connection)
        if self._upstream is not None:
            self._upstream.close()
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the trail has all requests."""

    def _serve(self) -> None:
        call = Call(self.command, self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
        if self.proxy.refuses:
            self._close()
            return
        try:
            if call.is_watch:
                self._serve_watch()
                return
            fault = self.proxy.injector.for_request(call)
            if fault is None:
                self._answer(*self._forward(body))
            else:
                self._serve_fault(fault, body)
        except _Closed:
            self._close()
        except (OSError, http.client.HTTPException):
            self._close()  # the API server restarts, or the client has gone

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    # --- requests

    def _serve_fault(self, fault: Fault, body: bytes | None) -> None:
        kind = fault.kind
        if kind in _BEFORE:
            self._fail(*_ERRORS[kind])
        elif kind == "timeout":
            self._pause(fault.seconds)
            raise _Closed
        elif kind in ("half-open", "half-open renewal"):
            self._pause_while_open(fault.seconds)
            raise _Closed
        elif kind in ("late write", "kill during write"):
            if kind != "late write":
                self.proxy.kill(fault)
            self._shut()
            self._pause(fault.seconds)
            self._forward(body)
            raise _Closed
        elif kind == "kill before write":
            self.proxy.kill(fault)
            raise _Closed
        else:
            self._serve_after_effect(fault, self._forward(body))

    def _serve_after_effect(self, fault: Fault, answer: tuple[int, Mapping[str, str], bytes]) -> None:
        if fault.kind == "error after write":
            self._fail(*_ERRORS[fault.kind])
        elif fault.kind == "slow response":
            self._pause(fault.seconds)
            self._answer(*answer)
        elif fault.kind == "half-open after write":
            self._pause_while_open(fault.seconds)
            raise _Closed
        else:  # lost response, lost renewal, kill after write
            if fault.kind == "kill after write":
                self.proxy.kill(fault)
            raise _Closed

    def _forward(self, body: bytes | None) -> tuple[int, Mapping[str, str], bytes]:
        """Send the request to the API server; on a connection that it has just closed, send it again."""
        for attempt in (1, 2):
            began, reused = time.monotonic(), self._upstream is not None
            if self._upstream is None:
                self._upstream = self.proxy.upstream.connect(_UPSTREAM_TIMEOUT)
            try:
                self._upstream.request(self.command, self.path, body, self._headers())
                response = self._upstream.getresponse()
                data = response.read()
                break
            except (ConnectionError, http.client.BadStatusLine):
                self._upstream.close()
                self._upstream = None
                if not reused or attempt == 2:
                    raise
        self.proxy.trail.add(
            Logged(began, self.proxy.operator, self.command, Call(self.command, self.path).path, response.status)
        )
        return response.status, dict(response.getheaders()), data

    def _headers(self) -> dict[str, str]:
        return {key: value for key, value in self.headers.items() if key.lower() not in _NOT_FORWARDED}

    def _answer(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self.send_response_only(status)
        for key, value in headers.items():
            if key.lower() not in _NOT_FORWARDED:
                self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _fail(self, status: int, reason: str, message: str) -> None:
        document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": status,
        }
        headers = {"Content-Type": "application/json"}
        self._answer(status, headers | ({"Retry-After": "1"} if status == 429 else {}), json.dumps(document).encode())

    # --- watches

    def _serve_watch(self) -> None:
        connection = self.proxy.upstream.connect(_WATCH_TIMEOUT)
        try:
            connection.request("GET", self.path, headers=self._headers())
            response = connection.getresponse()
            if response.status != 200:
                self._answer(response.status, dict(response.getheaders()), response.read())
                return
            self.send_response_only(200)
            self.send_header("Content-Type", response.getheader("Content-Type") or "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while line := response.readline():
                self._deliver(line)
            self.wfile.write(b"0\r\n\r\n")
        finally:
            connection.close()

    def _deliver(self, line: bytes) -> None:
        fault = None if line.startswith(b'{"type":"BOOKMARK"') else self.proxy.injector.for_event()
        kind = fault.kind if fault is not None else ""
        if fault is None:
            self._chunk(line)
        elif kind == "event dropped":
            raise _Closed
        elif kind == "event gone":
            self._chunk(_GONE)
            self.wfile.write(b"0\r\n\r\n")
            raise _Closed
        elif kind == "event cut":
            self._chunk(line[: len(line) // 2])
            raise _Closed
        elif kind == "event delayed":
            self._pause(fault.seconds)
            self._chunk(line)
        elif kind == "event duplicated":
            self._chunk(line)
            self._chunk(line)
        elif kind == "watch silent":
            self._pause_while_open(fault.seconds)
            raise _Closed

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    # --- the client's connection

    def _pause(self, seconds: float) -> None:
        self.proxy.stopping.wait(seconds)

    def _pause_while_open(self, seconds: float) -> None:
        """Wait until the client closes the connection, at most ``seconds``."""
        deadline = time.monotonic() + seconds
        self.connection.settimeout(0.2)
        while time.monotonic() < deadline and not self.proxy.stopping.is_set():
            with contextlib.suppress(TimeoutError):
                if not self.connection.recv(1, socket.MSG_PEEK):
                    return
                self._pause(0.2)

    def _shut(self) -> None:
        """Close the connection as seen by the client, with a reset, as a lost peer does."""
        with contextlib.suppress(OSError):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        self.close_connection = True
        self._shut()
