"""The HTTP server of the probes, of the metrics and of progress reports. No client can exhaust the operator through it.

One thread reads all connections and two threads compute the responses, so that a connection costs no thread. At the
largest number of connections a new one ends the oldest: clients that send nothing, or one byte at a time, cannot lock
out a probe. http.server starts a thread for each connection and has no deadline for a whole request; the libraries that
have both are web frameworks. A request here is GET or HEAD without a body, or a POST where the server takes one, and
gets one response.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import http.client
import io
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from dljob_operator import logs
from dljob_operator.engine.serving.certificate import TlsContexts
from dljob_operator.engine.serving.rates import Gate, Rate

_LOG = logging.getLogger(__name__)
_END = b"\r\n\r\n"
_MOST_DIGITS = 9


@dataclass(frozen=True)
class HttpLimits:
    """Of one server. `seconds` are for a whole connection: TLS handshake, request and response."""

    connections: int = 64
    seconds: float = 10.0
    request_bytes: int = 16 * 1024
    """Of the request line and the headers; a token of a service account has about 1 KiB."""
    threads: int = 2
    body_bytes: int = 0
    """Of the body of a POST; 0: none is taken."""
    per_address: Rate | None = None
    """New connections of one client's address; what exceeds it is closed at once, before its TLS handshake."""
    in_all: Rate | None = None
    """New connections of all clients together."""


@dataclass(frozen=True)
class HttpRequest:
    """A GET, HEAD or POST. The names of `headers` are in lower case."""

    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    body: bytes = b""
    address: str = ""
    """The client's."""


@dataclass(frozen=True)
class HttpResponse:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "text/plain; charset=utf-8"})


class _Refused(Exception):
    """A request that gets an error response."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.response = HttpResponse(status, f"{status.phrase}\n".encode())


def parse_address(option: str, text: str, examples: str) -> tuple[str, int]:
    """Split "host:port"; ":port" means all interfaces, host "". Raises ValueError with the option's name."""
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise ValueError(f"{option}: {text!r} has no port; write {examples}")
    return host.strip("[]"), int(port)


def _listen(address: tuple[str, int], backlog: int) -> socket.socket:
    """Listen, on all interfaces with IPv6 and IPv4: the kubelet probes a pod by the family that its cluster has."""
    host, _ = address
    if not host and socket.has_dualstack_ipv6():
        try:
            return socket.create_server(address, family=socket.AF_INET6, dualstack_ipv6=True, backlog=backlog)
        except OSError as e:
            if e.errno == errno.EADDRINUSE:
                raise
            # the kernel has IPv6 switched off, which has_dualstack_ipv6() need not know
    return socket.create_server(address, family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=backlog)


class HttpServer:
    """Answers with what `respond` returns, which two threads call. It listens at once and answers from `start` on.

    `closed` is called for a connection that a limit ends unanswered, with the client's address, or "" where the limit
    is for all.
    """

    def __init__(
        self,
        address: tuple[str, int],
        respond: Callable[[HttpRequest], HttpResponse],
        certificate: TlsContexts | None = None,
        limits: HttpLimits = HttpLimits(),
        closed: Callable[[str], None] = lambda address: None,
    ) -> None:
        self._socket = _listen(address, limits.connections)
        self._socket.setblocking(False)
        self._respond = respond
        self._certificate = certificate
        self.limits = limits
        self._closed = closed
        self._gates = [
            Gate(rate, key) for rate, key in ((limits.per_address, str), (limits.in_all, lambda host: "")) if rate
        ]
        self._connections: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._executor = ThreadPoolExecutor(limits.threads, thread_name_prefix=f"http-{self.port}")
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: _LOG.debug("%s", context.get("message")))
        self._thread = threading.Thread(target=self._run, name=f"http-{self.port}", daemon=True)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End all connections. It waits for that, but not for a response that is being computed."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)
        self._socket.close()
        self._executor.shutdown(wait=False, cancel_futures=True)

    # The server's own thread

    def _run(self) -> None:
        self._listen()
        self._loop.run_forever()
        self._loop.remove_reader(self._socket)
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left))
        self._loop.run_until_complete(asyncio.sleep(0))  # the transports' last callbacks
        self._loop.close()

    def _listen(self) -> None:
        self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        """Take one connection; the loop calls this again while there are more, after the work of the others."""
        try:
            connection, address = self._socket.accept()
        except BlockingIOError:
            return
        except OSError as error:  # the process has no file descriptor left, or the client has gone already
            _LOG.warning("cannot accept a connection", extra=logs.fields(port=self.port, error=str(error)))
            self._loop.remove_reader(self._socket)
            self._loop.call_later(0.1, self._listen)
            return
        full = next((gate for gate in self._gates if not gate.opens(address[0])), None)
        if full is not None:
            connection.close()
            self._closed(full.key(address[0]))
            return
        connection.setblocking(False)
        while len(self._connections) >= self.limits.connections:
            oldest = next(iter(self._connections))
            del self._connections[oldest]
            oldest.cancel()
            self._closed("")
        task = self._loop.create_task(self._serve(connection, address[0]))
        self._connections[task] = None
        task.add_done_callback(functools.partial(self._ended, connection))

    def _ended(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._connections.pop(task, None)
        connection.close()  # not in the task, which may have been cancelled before its first step

    async def _serve(self, connection: socket.socket, address: str) -> None:
        # what ends a connection is the client's affair: it has gone, is too slow, or its TLS is not ours
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            async with asyncio.timeout(self.limits.seconds):
                await self._exchange(connection, address)

    async def _exchange(self, connection: socket.socket, address: str) -> None:
        reader = asyncio.StreamReader(self.limits.request_bytes)
        protocol = asyncio.StreamReaderProtocol(reader)
        secure = self._certificate.context() if self._certificate else None
        transport, _ = await self._loop.connect_accepted_socket(
            lambda: protocol,
            connection,
            ssl=secure,
            ssl_handshake_timeout=self.limits.seconds if secure else None,
            ssl_shutdown_timeout=1.0 if secure else None,
        )
        try:
            writer = asyncio.StreamWriter(transport, protocol, reader, self._loop)
            writer.write(await self._answer(reader, address))
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        finally:
            transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, address: str) -> bytes:
        has_body = True
        try:
            request = _parse(await self._head(reader), takes_post=bool(self.limits.body_bytes))
            request = replace(request, address=address)
            has_body = request.method != "HEAD"
            if request.method == "POST":
                request = replace(request, body=await self._body(reader, request))
            response = await self._loop.run_in_executor(self._executor, self._respond, request)
        except _Refused as refused:
            response = refused.response
        except (OSError, EOFError):
            raise
        except Exception:
            _LOG.exception("no response to an HTTP request", extra=logs.fields(port=self.port))
            response = _Refused(HTTPStatus.INTERNAL_SERVER_ERROR).response
        return _encode(response, has_body=has_body)

    async def _head(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readuntil(_END)
        except asyncio.LimitOverrunError:
            raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None

    async def _body(self, reader: asyncio.StreamReader, request: HttpRequest) -> bytes:
        length = request.headers.get("content-length", "")
        if "transfer-encoding" in request.headers or not (length.isascii() and length.isdecimal()):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED)
        if len(length) > _MOST_DIGITS or int(length) > self.limits.body_bytes:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return await reader.readexactly(int(length))


def _parse(head: bytes, *, takes_post: bool) -> HttpRequest:
    line, _, rest = head.partition(b"\r\n")
    try:
        method, target, version = line.decode("ascii").split(" ")
        parsed = http.client.parse_headers(io.BytesIO(rest))
    except (ValueError, http.client.HTTPException):
        raise _Refused(HTTPStatus.BAD_REQUEST) from None
    if not version.startswith("HTTP/1.") or not target.startswith("/"):
        raise _Refused(HTTPStatus.BAD_REQUEST)
    if method not in ("GET", "HEAD", *(["POST"] if takes_post else [])):
        raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED)
    path, _, query = target.partition("?")
    return HttpRequest(path, query, {name.lower(): str(value) for name, value in parsed.items()}, method)


def _encode(response: HttpResponse, *, has_body: bool) -> bytes:
    status = HTTPStatus(response.status)
    headers = {**response.headers, "Content-Length": str(len(response.body)), "Connection": "close"}
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("latin-1") + _END + (response.body if has_body else b"")
