"""An HTTP server whose answers a test scripts, including those of a server that hangs or sends nonsense."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Exchange:
    """One request, and how to answer it."""

    method: str
    path: str
    query: dict[str, str]
    token: str
    """The Authorization header."""
    body: Any
    handler: BaseHTTPRequestHandler
    closing: threading.Event

    @property
    def watches(self) -> bool:
        return self.query.get("watch") == "true"

    @property
    def connection(self) -> int:
        """The client's port: the same for all requests of one connection."""
        return int(self.handler.client_address[1])

    def answer(self, content: Any, status: int = 200) -> None:
        """Send `content` as JSON, or as it is if it is bytes."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.handler.send_response(status)
        self.handler.send_header("Content-Length", str(len(data)))
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def begin_stream(self) -> None:
        """Send the headers of a watch, whose lines follow with `line`."""
        self.handler.send_response(200)
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()
        self.handler.close_connection = True

    def line(self, content: Any) -> None:
        self.send(json.dumps(content).encode() + b"\n")

    def send(self, data: bytes) -> None:
        """Send a chunk of a stream."""
        self.handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def hang(self) -> None:
        """Keep the connection open and send nothing until the test ends, as a peer that has vanished."""
        self.closing.wait(60)
        self.handler.close_connection = True


@dataclass
class ScriptedServer:
    url: str
    requests: list[Exchange] = field(default_factory=list)


class _Server(ThreadingHTTPServer):
    request_queue_size = 64  # with the default, 5, some of a client's first connections wait for a second
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self.connections: set[socket.socket] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        """A client may keep a connection, and with it a thread here, until it is collected."""
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Server6(_Server):
    address_family = socket.AF_INET6


@contextmanager
def scripted(respond: Callable[[Exchange], None], host: str = "127.0.0.1") -> Iterator[ScriptedServer]:
    """Serve on a port of its own; `respond` is called for each request, on a thread of its own."""
    closing = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            parts = urlsplit(self.path)
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            query = dict(parse_qsl(parts.query))
            exchange = Exchange(
                self.command, parts.path, query, self.headers.get("Authorization", ""), body, self, closing
            )
            server.requests.append(exchange)
            try:
                respond(exchange)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client has given up

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _do

        def log_message(self, *_: object) -> None:
            pass

    with (_Server6 if ":" in host else _Server)((host, 0), Handler) as listening:
        server = ScriptedServer(f"http://{f'[{host}]' if ':' in host else host}:{listening.server_port}")
        threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True).start()  # seconds to shut down
        try:
            yield server
        finally:
            closing.set()
            listening.shutdown()
            listening.end_connections()
