"""The reverse proxy between an operator and the API server, which injects faults. Each operator has one of its own.

It listens with plain HTTP on the loopback interface, and is authenticated at the API server as the administrator.

**The model of watches.** A watch of a real API server loses no event silently: its stream ends, or the client gets
410 Gone. So a "dropped" event is one before which the stream ends (the client continues from the version before it), a
"gone" event is replaced by 410 Gone (the client lists again), a "cut" one arrives in part. Delayed events keep their
order. A duplicated event is what a client sees that continues from an older version than its last one.

**The model of requests.** Each answer that is injected is one that an API server or a load balancer gives: an error
before or after the effect, none at all, or a late one. A write whose connection has closed may take effect later, as
does one that waits in a socket's buffer. No answer lies: a creation never gets AlreadyExists for a new name.

**Why not toxiproxy.** It disturbs TCP streams, and so has 3 of the 23 faults in this proxy: timeout, slow response and
partition. The others need the method, the path or the lines of a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.injector import Call, Injector

_NOT_FORWARDED = ("connection", "host", "transfer-encoding", "content-length", "keep-alive", "accept-encoding")
_TIMEOUT = aiohttp.ClientTimeout(total=65)
_WATCH_TIMEOUT = aiohttp.ClientTimeout(total=330)  # longer than a watch that a client requests
_LONGEST_EVENT = 2**22
_ERRORS = {
    "conflict": (409, "Conflict", "injected: the object has been modified"),
    "throttled": (429, "TooManyRequests", "injected: too many requests"),
    "server error": (500, "InternalError", "injected: no effect"),
    "error after write": (500, "InternalError", "injected: the write took effect"),
}
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
    """The requests of all operators that reached the API server, but watches. Thread-safe."""

    entries: list[Logged] = field(default_factory=list)

    def writes_since(self, moment: float, namespace: str) -> list[Logged]:
        """The writes in this namespace but those of the Lease."""
        within = f"/namespaces/{namespace}/"
        return [
            one
            for one in list(self.entries)
            if one.at >= moment and one.method != "GET" and within in one.path and "/leases" not in one.path
        ]


class Proxy:
    """A context manager that serves on a free port of the loopback interface, on a thread of its own."""

    def __init__(
        self, operator: str, server: str, context: ssl.SSLContext | None, trail: Trail, injector: Injector
    ) -> None:
        """``server`` is the URL of the API server, and ``context`` has the administrator's certificate."""
        self.operator = operator
        self.server = server
        self.trail = trail
        self.injector = injector
        self.kill: Callable[[Fault], object] = lambda fault: None
        """Kills a process of the operator; the faults "kill ... write" call it."""
        self.url = ""
        self._context = context
        self._refused_until = 0.0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy {operator}", daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._wait(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _start(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._context or True)
        self._session = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, read_bufsize=_LONGEST_EVENT,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )  # fmt: skip
        application = web.Application(client_max_size=0)
        application.router.add_route("*", "/{path:.*}", self._serve)
        # of a request in progress; 0 would be no limit
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    def partition(self, seconds: float) -> None:
        """Close all connections, and new ones for ``seconds``."""
        self._refused_until = time.monotonic() + seconds
        self._loop.call_soon_threadsafe(self._close_all)

    def _close_all(self) -> None:
        for connection in self._runner.server.connections if self._runner.server else ():
            _close(connection.transport)

    @property
    def refuses(self) -> bool:
        return time.monotonic() < self._refused_until

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.method, request.raw_path)
        # a connection breaks because of a fault, because the API server restarts, or because the client has gone
        with contextlib.suppress(_Closed, OSError, aiohttp.ClientError, asyncio.TimeoutError):
            if self.refuses:
                raise _Closed
            if call.is_watch:
                return await self._serve_watch(request)
            fault = self.injector.for_request(call)
            if fault is None:
                return await self._forward(request)
            return await self._serve_fault(fault, request)
        _close(request.transport)
        return web.Response()

    # --- requests

    async def _serve_fault(self, fault: Fault, request: web.Request) -> web.Response:
        await request.read()
        match fault.kind:
            case "conflict" | "throttled" | "server error":
                return _failure(fault.kind)
            case "timeout":
                await asyncio.sleep(fault.seconds)
            case "half-open" | "half-open renewal":
                await _wait_while_open(request, fault.seconds)
            case "kill before write":
                self.kill(fault)
            case "late write" | "kill during write":
                if fault.kind != "late write":
                    self.kill(fault)
                _close(request.transport)
                await asyncio.sleep(fault.seconds)
                await self._forward(request)
            case _:
                return await self._serve_after_effect(fault, request, await self._forward(request))
        raise _Closed

    async def _serve_after_effect(self, fault: Fault, request: web.Request, answer: web.Response) -> web.Response:
        match fault.kind:
            case "error after write":
                return _failure(fault.kind)
            case "slow response":
                await asyncio.sleep(fault.seconds)
                return answer
            case "half-open after write":
                await _wait_while_open(request, fault.seconds)
            case "kill after write":
                self.kill(fault)
        raise _Closed  # a lost response or renewal

    def _send(self, request: web.Request, body: bytes | None, timeout: aiohttp.ClientTimeout) -> Any:
        url = URL(f"{self.server}{request.raw_path}", encoded=True)
        return self._session.request(
            request.method, url, data=body, headers=_passed(request), timeout=timeout, allow_redirects=False
        )

    async def _forward(self, request: web.Request) -> web.Response:
        body = await request.read()
        began = time.monotonic()
        async with self._send(request, body or None, _TIMEOUT) as answer:
            found = web.Response(status=answer.status, headers=_passed(answer), body=await answer.read())
        self.trail.entries.append(Logged(began, self.operator, request.method, request.path, answer.status))
        return found

    # --- watches

    async def _serve_watch(self, request: web.Request) -> web.StreamResponse:
        async with self._send(request, None, _WATCH_TIMEOUT) as answer:
            if answer.status != 200:
                return web.Response(status=answer.status, headers=_passed(answer), body=await answer.read())
            watch = web.StreamResponse(headers=_passed(answer))
            watch.enable_chunked_encoding()
            await watch.prepare(request)
            async for line in answer.content:
                is_event = not line.startswith(b'{"type":"BOOKMARK"')
                fault = self.injector.for_event() if is_event else None
                for part in await _delivered(fault, request, line):
                    await watch.write(part)
                if fault is not None and fault.kind not in ("event delayed", "event duplicated"):
                    raise _Closed
            return watch


async def _delivered(fault: Fault | None, request: web.Request, line: bytes) -> list[bytes]:
    """What the client gets in place of an event. It gets no later one, unless this one was delayed or duplicated."""
    match fault.kind if fault is not None else "":
        case "event dropped":
            return []
        case "event gone":
            return [_GONE]
        case "event cut":
            return [line[: len(line) // 2]]
        case "event duplicated":
            return [line, line]
        case "event delayed":
            await asyncio.sleep(fault.seconds if fault else 0)
        case "watch silent":
            await _wait_while_open(request, fault.seconds if fault else 0)
            return []
    return [line]


def _passed(message: web.Request | aiohttp.ClientResponse) -> list[tuple[str, str]]:
    """The headers that the other side gets too."""
    return [(key, value) for key, value in message.headers.items() if key.lower() not in _NOT_FORWARDED]


def _failure(kind: str) -> web.Response:
    status, reason, message = _ERRORS[kind]
    document = {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "code": status,
    }  # fmt: skip
    return web.json_response(document, status=status, headers={"Retry-After": "1"} if status == 429 else {})


def _close(transport: asyncio.BaseTransport | None) -> None:
    """End a connection after what was written on it."""
    if transport is not None and not transport.is_closing():
        transport.close()


async def _wait_while_open(request: web.Request, seconds: float) -> None:
    """Wait until the client closes the connection, at most ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and request.transport is not None and not request.transport.is_closing():
        await asyncio.sleep(0.2)


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
