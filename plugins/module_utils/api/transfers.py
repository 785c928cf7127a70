"""Many requests at a time in the thread that wants their answers, by libcurl's multi interface.

32 threads with urllib3 take eleven times the processor time: each request waits for the interpreter's lock several
times, and http.client parses its headers in Python. A request here takes 0.06 ms.

libcurl repeats at once what it sent on a connection that was kept and that closed before any byte of a response. It
asks before each sending whether the write is still permitted.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from ansible_collections.dljob.operator.plugins.module_utils.api.attempts import NoResponse, Response
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import Result, Steps
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import (
    ApiRequest,
    Connection,
    TooLate,
    check_deadline,
)
from kubernetes import client

try:
    import pycurl
except ImportError:  # a platform without a wheel
    pycurl = None

is_available = pycurl is not None

_LONGEST_WAIT = 1.0
"""Seconds for which a thread waits for its transfers before it looks at them again, whatever libcurl says."""
_POSTPONED = (429, 503)
"""The statuses of which the header Retry-After is read."""


class Transfers:
    """Runs steps over the connections that a :class:`Connection` describes. It is thread-safe.

    All threads together have ``width`` requests in progress, in equal parts; each has connections of its own, which the
    next thread takes over.
    """

    def __init__(
        self, connection: Connection, width: int, timeout: Callable[[], float], seconds_left: Callable[[], float] | None
    ) -> None:
        """``timeout`` are the seconds for one request. After ``seconds_left`` no write is sent."""
        self._settings = _Settings(connection, timeout, seconds_left)
        self._width = width
        self._lock = threading.Lock()
        self._idle: list[_Loop] = []
        self._busy = 0
        self._is_closed = False

    def each(self, every: Iterable[Steps[Any]], at_once: Callable[[], float] = lambda: math.inf) -> list[Any]:
        """Run all steps, started in their order, and return their results.

        No more of them run at a time than ``at_once`` says, which is called before each start and after each end.
        Raises the error of the first steps that failed, after all others have ended.
        """
        with self._borrowed(shares=True) as loop:
            return loop.run(every, lambda: min(at_once(), self._share()))

    def one(self, steps: Steps[Result]) -> Result:
        """Run steps alone and return their result. It takes nothing from the share of the callers of :meth:`each`."""
        with self._borrowed(shares=False) as loop:
            (result,) = loop.run([steps], lambda: 1)
        found: Result = result
        return found

    def close(self) -> None:
        """Close all connections that are not in use."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for loop in idle:
            loop.close()

    def _share(self) -> int:
        return max(1, self._width // max(1, self._busy))

    @contextlib.contextmanager
    def _borrowed(self, *, shares: bool) -> Iterator[_Loop]:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("the connections are closed")
            loop = self._idle.pop() if self._idle else _Loop(self._settings, self._width)
            self._busy += shares
        try:
            yield loop
        except BaseException:
            loop.abandon()
            raise
        finally:
            with self._lock:
                self._busy -= shares
                if self._is_closed:
                    loop.close()
                else:
                    self._idle.append(loop)


@dataclass(eq=False, slots=True)
class _Task:
    """Steps in progress, at a place among all that one caller runs."""

    place: int
    steps: Steps[Any]


class _Handle:
    """One easy handle, for one request at a time."""

    def __init__(self, settings: _Settings) -> None:
        self.curl = pycurl.Curl()
        self.chunks: list[bytes] = []
        self.request: ApiRequest | None = None
        for option, value in settings.options:
            self.curl.setopt(option, value)
        if settings.connection.configuration.ssl_ca_cert:  # these alone
            self.curl.unsetopt(pycurl.CAPATH)
        if settings.seconds_left is not None:
            left = settings.seconds_left
            refused, permitted = pycurl.PREREQFUNC_ABORT, pycurl.PREREQFUNC_OK
            self.curl.setopt(
                pycurl.PREREQFUNCTION,
                lambda *_: refused if self.request and self.request.is_write and left() <= 0 else permitted,
            )

    def prepare(self, settings: _Settings, request: ApiRequest) -> None:
        """Raises :class:`TooLate`, and what the renewal of credentials raises."""
        curl, data = self.curl, request.encoded()
        headers = [f"{name}: {value}" for name, value in settings.connection.headers(request).items()]
        connect = settings.timeout()
        if request.is_write and settings.seconds_left is not None:
            connect = min(connect, check_deadline(settings.seconds_left, request))
        curl.setopt(pycurl.URL, settings.base + request.target)
        curl.setopt(pycurl.HTTPHEADER, [*headers, *settings.headers])
        if data is None:
            curl.setopt(pycurl.HTTPGET, 1)
        else:
            curl.setopt(pycurl.POSTFIELDS, data)
        curl.setopt(pycurl.CUSTOMREQUEST, request.method)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, _milliseconds(connect))
        curl.setopt(pycurl.TIMEOUT_MS, _milliseconds(settings.timeout()))
        self.chunks = []
        curl.setopt(pycurl.WRITEFUNCTION, self.chunks.append)
        self.request = request

    def response(self) -> Response:
        status = self.curl.getinfo(pycurl.RESPONSE_CODE)
        after = ""
        if status in _POSTPONED and (seconds := self.curl.getinfo(pycurl.RETRY_AFTER)):
            after = str(seconds)
        return Response(status, b"".join(self.chunks), after)

    def error(self, code: int, message: str) -> NoResponse | TooLate:
        if code == pycurl.E_ABORTED_BY_CALLBACK and self.request is not None:
            return TooLate(self.request)
        was_sent = code not in (pycurl.E_COULDNT_CONNECT, pycurl.E_COULDNT_RESOLVE_HOST, pycurl.E_COULDNT_RESOLVE_PROXY)
        return NoResponse(message, was_sent=was_sent, timed_out=code == pycurl.E_OPERATION_TIMEDOUT)


class _Settings:
    """What all handles have in common."""

    def __init__(
        self, connection: Connection, timeout: Callable[[], float], seconds_left: Callable[[], float] | None
    ) -> None:
        self.connection = connection
        self.timeout = timeout
        self.seconds_left = seconds_left
        configuration = connection.configuration
        self.base, self.headers, named = _server(configuration)
        """The URL to which the target of a request is appended, and headers of every request."""
        self.options = (*_lasting(), *named, *_tls(configuration), *_proxy(configuration))


class _Loop:
    """The transfers of one thread at a time."""

    def __init__(self, settings: _Settings, connections: int) -> None:
        self._settings = settings
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._free: list[_Handle] = []
        self._busy: dict[Any, tuple[_Handle, _Task]] = {}
        self._paused: list[tuple[float, int, _Task]] = []
        self._order = itertools.count()
        self._results: dict[int, Any] = {}
        self._errors: dict[int, BaseException] = {}

    def close(self) -> None:
        self.abandon()
        for handle in self._free:
            handle.curl.close()
        self._free.clear()
        self._multi.close()

    def abandon(self) -> None:
        """End all transfers, and their connections."""
        for handle, _ in self._busy.values():
            self._multi.remove_handle(handle.curl)
            handle.curl.close()
        self._busy.clear()
        self._paused.clear()

    def run(self, every: Iterable[Steps[Any]], at_once: Callable[[], float]) -> list[Any]:
        """See :meth:`Transfers.each`."""
        self._results, self._errors = {}, {}
        waiting = enumerate(every)
        is_exhausted = False
        while True:
            while not is_exhausted and len(self._busy) + len(self._paused) < max(1, at_once()):
                found = next(waiting, None)
                is_exhausted = found is None
                if found is not None:
                    task = _Task(*found)
                    self._go_on(task, task.steps.send, None)
            if not self._busy and not self._paused:
                if is_exhausted:
                    break
                continue
            if not self._progress():
                self._wait()
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._results[place] for place in sorted(self._results)]

    def _go_on(self, task: _Task, resume: Callable[[Any], Any], value: Any) -> None:
        """Run the steps of ``task`` until they wait for something."""
        while True:
            try:
                wanted = resume(value)
            except StopIteration as end:
                self._results[task.place] = end.value
                return
            except Exception as error:
                self._errors[task.place] = error
                return
            if isinstance(wanted, float):
                heapq.heappush(self._paused, (time.monotonic() + wanted, next(self._order), task))
                return
            try:
                self._send(wanted, task)
            except Exception as error:
                resume, value = task.steps.throw, error
            else:
                return

    def _send(self, request: ApiRequest, task: _Task) -> None:
        handle = self._free.pop() if self._free else _Handle(self._settings)
        try:
            handle.prepare(self._settings, request)
        except BaseException:
            self._free.append(handle)
            raise
        self._multi.add_handle(handle.curl)
        self._busy[handle.curl] = handle, task

    def _progress(self) -> bool:
        """Let libcurl work, and the steps go on whose answers or pauses are over; return whether there were any."""
        self._multi.perform()
        is_any = False
        while True:
            left, succeeded, failed = self._multi.info_read()
            for curl in succeeded:
                handle, task = self._end(curl)
                self._go_on(task, task.steps.send, handle.response())
            for curl, code, message in failed:
                handle, task = self._end(curl)
                self._go_on(task, task.steps.throw, handle.error(code, message))
            is_any = is_any or bool(succeeded or failed)
            if not left:
                break
        while self._paused and self._paused[0][0] <= time.monotonic():
            _, _, task = heapq.heappop(self._paused)
            self._go_on(task, task.steps.send, None)
            is_any = True
        return is_any

    def _end(self, curl: Any) -> tuple[_Handle, _Task]:
        handle, task = self._busy.pop(curl)
        self._multi.remove_handle(curl)
        self._free.append(handle)
        return handle, task

    def _wait(self) -> None:
        seconds = _LONGEST_WAIT
        if self._paused:
            seconds = min(seconds, max(0.0, self._paused[0][0] - time.monotonic()))
        if not self._busy:
            time.sleep(seconds)
            return
        milliseconds = self._multi.timeout()
        if milliseconds >= 0:
            seconds = min(seconds, milliseconds / 1000)
        if seconds and self._multi.select(seconds) < 0:
            time.sleep(min(seconds, 0.01))  # libcurl waits for something that is no socket


def _lasting() -> Iterator[tuple[int, Any]]:
    """For connections that last, in a process of several threads."""
    yield pycurl.NOSIGNAL, 1
    yield pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1  # the second costs both sides more
    yield pycurl.TCP_KEEPALIVE, 1
    yield pycurl.TCP_KEEPIDLE, 30
    yield pycurl.TCP_KEEPINTVL, 10


def _server(configuration: client.Configuration) -> tuple[str, tuple[str, ...], tuple[tuple[int, Any], ...]]:
    """The URL before the target of a request, headers of every request, and what a name for the certificate needs."""
    parts = urlsplit(str(configuration.host))
    named = getattr(configuration, "tls_server_name", None)
    options: tuple[tuple[int, Any], ...] = ()
    headers = ["Expect:"]  # libcurl would ask before it sends a large body
    if named and parts.hostname and parts.scheme == "https":
        port = parts.port or 443
        headers.append(f"Host: {parts.netloc.rpartition('@')[2]}")
        address = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        options = ((pycurl.CONNECT_TO, [f"{named}:{port}:{address}:{port}"]),)
        parts = parts._replace(netloc=f"{named}:{port}")
    return urlunsplit(parts._replace(query="", fragment="")).rstrip("/"), tuple(headers), options


def _tls(configuration: client.Configuration) -> Iterator[tuple[int, Any]]:
    """Whom to trust, and who this client is."""
    if not configuration.verify_ssl:
        yield pycurl.SSL_VERIFYPEER, 0
        yield pycurl.PROXY_SSL_VERIFYPEER, 0
    if not configuration.verify_ssl or configuration.assert_hostname is False:
        yield pycurl.SSL_VERIFYHOST, 0
    defaults = ssl.get_default_verify_paths()
    if trusted := configuration.ssl_ca_cert or defaults.cafile:
        yield pycurl.CAINFO, trusted
        yield pycurl.PROXY_CAINFO, trusted
    if not configuration.ssl_ca_cert and defaults.capath:
        yield pycurl.CAPATH, defaults.capath
    if configuration.cert_file:
        yield pycurl.SSLCERT, configuration.cert_file
    if configuration.key_file:
        yield pycurl.SSLKEY, configuration.key_file


def _proxy(configuration: client.Configuration) -> Iterator[tuple[int, Any]]:
    """The configuration's proxy with the credentials in its URL, or none: libcurl reads the environment otherwise."""
    yield pycurl.PROXY, configuration.proxy or ""
    yield pycurl.NOPROXY, ""


def _milliseconds(seconds: float) -> int:
    """At least one: 0 would be no limit."""
    return max(1, int(seconds * 1000))
