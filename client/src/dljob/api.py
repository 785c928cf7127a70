"""Requests to the API server, many at once, over the few connections that libcurl keeps."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pycurl

from dljob import decoding, shared
from dljob.config import Config, Credentials, ExecPlugin
from dljob.errors import ApiError, ConfigError, ConnectionFailed, DljobError

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
PAGE = 500
"""Objects of one answer of a list."""
_CONNECT_SECONDS = 15
_QUIET_SECONDS = 60
"""Without a byte for so long a request has failed; a watch is exempt."""
_TRIES = 4
_MOST_AT_ONCE = 32
_MOST_IDLE = 4
"""Sets of connections that are kept for later requests."""
_MOST_PAUSE = 0.5
_LONGEST_LINE = 64 * 1024 * 1024
_SAFE = ("GET", "HEAD")
_ENDLESS = frozenset(("watch", "follow"))
"""Parameters of requests whose answers may be quiet for long."""


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    method: str = "GET"
    body: Any = None
    """What is sent as JSON."""
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes
    retry_after: float = 0.0
    cut: str = ""
    """Why an endless answer has ended before its end, in the words of libcurl."""

    def json(self) -> dict[str, Any]:
        """The object of the body, as :func:`dljob.decoding.answer`. Raises ApiError for a body without one."""
        return decoding.answer(self.body)

    def error(self) -> ApiError | None:
        """The error that the API server reports, if it does."""
        if self.status < 400:
            return None
        try:
            found = json.loads(self.body)
            reason, message = str(found.get("reason") or ""), str(found.get("message") or "")
            details = found.get("details")
        except (ValueError, AttributeError, RecursionError):
            reason, message, details = "", self.body[:200].decode(errors="replace").strip(), None
        if self.status == 401:
            message = "The cluster does not accept your credentials: they are wrong or expired. Log in again."
        return ApiError(self.status, reason, message or f"The API server answered with HTTP {self.status}.", details)


class Api:
    """Sends requests as the user of a :class:`Config`; several threads may share it."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._proxy = config.proxy or shared.module(shared.PROXIES).proxy_for(config.server, os.environ) or ""
        self._idle: list[pycurl.CurlMulti] = []

    def get(self, path: str, **query: str | int) -> Any:
        """One object or list. Raises ApiError, ConnectionFailed, ConfigError."""
        return self.send(Request(path, query))

    def send(self, request: Request) -> Any:
        """The body of the answer. Raises ApiError, ConnectionFailed, ConfigError."""
        (response,) = self.send_all([request])
        error = response.error()
        if error:
            raise error
        return response.json()

    def send_all(self, requests: Sequence[Request]) -> list[Response]:
        """All answers, errors among them, in the order of the requests. Raises ConnectionFailed, ConfigError.

        What the API server asks to send again (429) is sent again; with credentials that it does not take, an exec
        plugin runs again, once.
        """
        answers: dict[int, Response] = {}
        renewed = False
        for attempt in range(_TRIES):
            left = [number for number in range(len(requests)) if number not in answers]
            found = self._send([requests[number] for number in left])
            answers |= dict(zip(left, found, strict=True))
            refused = [number for number in left if answers[number].status == 401]
            later = [number for number in left if answers[number].status == 429]
            plugin = self.config.credentials
            if refused and isinstance(plugin, ExecPlugin) and not renewed:
                renewed = True
                plugin.forget()
                later += refused
            elif later and attempt < _TRIES - 1:
                time.sleep(min(10.0, max(answers[number].retry_after for number in later) or 1.0))
            if not later or attempt == _TRIES - 1:
                break
            for number in later:
                del answers[number]
        return [answers[number] for number in range(len(requests))]

    def lines(
        self, requests: Mapping[str, Request], timeout: float | None = None, stop: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[str, bytes | Response]]:
        """The lines of endless answers, each with its key, as they arrive; at the end of an answer its Response.

        Ends when all answers have ended, after ``timeout`` seconds, or half a second after ``stop()`` has become true.
        Raises ConnectionFailed only for an answer that has not begun.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self.streams() as streams:
            for key, request in requests.items():
                streams.add(key, request)
            while len(streams) and not stop() and (deadline is None or time.monotonic() < deadline):
                for key, item in streams.take(_MOST_PAUSE if deadline is None else deadline - time.monotonic()):
                    if isinstance(item, DljobError):
                        raise item
                    yield key, item

    def streams(self) -> Streams:
        """Answers that come and go, endless ones too."""
        return Streams(self)

    # --- libcurl

    def take_multi(self) -> pycurl.CurlMulti:
        """A set of connections that no other thread uses."""
        try:
            return self._idle.pop()
        except IndexError:
            multi = pycurl.CurlMulti()
        multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, _MOST_AT_ONCE)
        return multi

    def keep_multi(self, multi: pycurl.CurlMulti) -> None:
        """Keep the connections for the next requests, or close them."""
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(multi)
        else:
            multi.close()

    def _send(self, requests: Sequence[Request]) -> list[Response]:
        multi = self.take_multi()
        waiting = [(number, _Answer()) for number in range(len(requests))]
        answers = dict(waiting)
        open_: dict[pycurl.Curl, int] = {}
        retried: set[int] = set()
        responses: dict[int, Response] = {}
        try:
            while waiting or open_:
                while waiting and len(open_) < _MOST_AT_ONCE:
                    number, answer = waiting.pop(0)
                    handle = self.handle(requests[number], answer)
                    open_[handle] = number
                    multi.add_handle(handle)
                multi.perform()
                for handle, error in _ended(multi):
                    number = open_.pop(handle)
                    multi.remove_handle(handle)
                    if error and requests[number].method in _SAFE and number not in retried and error[0] in _RETRYABLE:
                        retried.add(number)
                        answers[number] = _Answer()
                        waiting.append((number, answers[number]))
                    elif error:
                        handle.close()
                        raise _failed(self.config, error)
                    else:
                        responses[number] = answers[number].response(handle)
                    handle.close()
                if open_:
                    _pause(multi, _MOST_PAUSE)
        finally:
            for handle in open_:
                multi.remove_handle(handle)
                handle.close()
            self.keep_multi(multi)
        return [responses[number] for number in range(len(requests))]

    def handle(self, request: Request, answer: _Answer, *, endless: bool = False) -> pycurl.Curl:
        """A transfer that is ready to begin."""
        config = self.config
        who = config.credentials()
        handle = pycurl.Curl()
        url = config.server + request.path
        if request.query:
            url += "?" + urlencode(request.query)
        headers = [f"Accept: {JSON}", f"User-Agent: dljob ({sys.platform})", *config.headers]
        if who.token:
            headers.append(f"Authorization: Bearer {who.token}")
        if config.tls_server_name:
            url = _by_other_name(handle, url, config.tls_server_name, headers)
        if request.body is not None:
            headers += [f"Content-Type: {request.content_type}", "Expect:"]
            handle.setopt(pycurl.POSTFIELDS, json.dumps(request.body).encode())
        for option, value in (
            (pycurl.CUSTOMREQUEST, request.method),
            (pycurl.URL, url),
            (pycurl.PROXY, self._proxy),
            (pycurl.NOPROXY, ""),  # libcurl's own reading of the environment is not kubectl's
            (pycurl.HTTPHEADER, headers),
            (pycurl.NOSIGNAL, 1),
            (pycurl.CONNECTTIMEOUT, _CONNECT_SECONDS),
            (pycurl.TCP_KEEPALIVE, 1),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
            (pycurl.PIPEWAIT, 1),  # one connection for all, rather than one handshake each
            (pycurl.WRITEFUNCTION, answer.write),
            (pycurl.HEADERFUNCTION, answer.header),
        ):
            handle.setopt(option, value)
        if not endless:
            handle.setopt(pycurl.LOW_SPEED_LIMIT, 1)
            handle.setopt(pycurl.LOW_SPEED_TIME, _QUIET_SECONDS)
            if not _is_local(config.server):
                handle.setopt(pycurl.ACCEPT_ENCODING, "gzip")
        if who.basic:
            handle.setopt(pycurl.USERPWD, who.basic)
        if config.server.startswith("https"):
            _secure(handle, config, who)
        return handle


def pages(
    api: Api, path: str, query: Mapping[str, str | int] | None = None, first: dict[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """The answers of a list; ``first`` is the one that has been read already. Raises as :meth:`Api.get`.

    ``query`` may have a ``limit`` other than ``PAGE``. :func:`dljob.decoding.items` has the objects of an answer.
    """
    asked = {"limit": PAGE, **(query or {})}
    page = api.get(path, **asked) if first is None else first
    while True:
        yield page
        token = decoding.metadata(page).get("continue")
        if not token:
            return
        page = api.get(path, **{**asked, "continue": token})


class Streams:
    """Answers at a time, endless ones too, whose lines are taken as they arrive. A context manager, for one thread."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._multi = api.take_multi()
        self._open: dict[pycurl.Curl, tuple[Hashable, _Answer]] = {}

    def __enter__(self) -> Streams:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._open:
            self._multi.remove_handle(handle)
            handle.close()
        self._open.clear()
        self._api.keep_multi(self._multi)

    def __len__(self) -> int:
        return len(self._open)

    def add(self, key: Hashable, request: Request, longest: int = 0) -> None:
        """Begin a request. A line of more than ``longest`` bytes comes in pieces; by default 64 MiB end the answer.

        Only an answer that is watched or followed may be quiet for long.
        """
        answer = _Answer(streaming=True, longest=longest)
        handle = self._api.handle(request, answer, endless=not _ENDLESS.isdisjoint(request.query))
        self._open[handle] = key, answer
        self._multi.add_handle(handle)

    def take(self, most: float) -> Iterator[tuple[Any, bytes | Response | ConnectionFailed | ConfigError]]:
        """What has arrived: lines, and at the end of an answer its Response, or why it has not begun.

        Then waits for more, ``most`` seconds at most.
        """
        self._multi.perform()
        for key, answer in list(self._open.values()):
            yield from ((key, line) for line in answer.take())
        for handle, error in _ended(self._multi):
            key, answer = self._open.pop(handle)
            self._multi.remove_handle(handle)
            yield from ((key, line) for line in answer.take())
            if error and not answer.begun:
                yield key, _failed(self._api.config, error)
            else:
                yield key, answer.response(handle, error[1] if error else "")
            handle.close()
        if self._open:
            _pause(self._multi, most)


_RETRYABLE = frozenset(
    (pycurl.E_GOT_NOTHING, pycurl.E_RECV_ERROR, pycurl.E_SEND_ERROR, pycurl.E_PARTIAL_FILE, pycurl.E_HTTP2)
)
"""The server closed a connection that was kept."""


class _Answer:
    """What has arrived of an answer."""

    def __init__(self, *, streaming: bool = False, longest: int = 0) -> None:
        self.begun = False
        self._streaming = streaming
        self._longest = longest
        self._status = 0
        self._retry_after = 0.0
        self._parts: list[bytes] = []
        self._length = 0
        self._has_line = False

    def header(self, line: bytes) -> None:
        if line.startswith(b"HTTP/"):
            self._status = int(line.split(None, 2)[1])
        elif line.lower().startswith(b"retry-after:"):
            value = line.partition(b":")[2].strip()
            self._retry_after = float(value) if value.isdigit() else 1.0

    def write(self, part: bytes) -> int:
        self.begun = True
        self._length += len(part)
        self._has_line = self._has_line or b"\n" in part
        if self._streaming and not self._longest and self._length > _LONGEST_LINE:
            return 0  # ends the request
        self._parts.append(part)
        return len(part)

    def take(self) -> Iterator[bytes]:
        """The complete lines so far, of an answer that is no error."""
        is_too_long = 0 < self._longest < self._length
        if self._status >= 400 or not (self._has_line or is_too_long):
            return
        *lines, rest = b"".join(self._parts).split(b"\n")
        if len(rest) > self._longest > 0:
            lines.append(rest)
            rest = b""
        self._parts, self._length, self._has_line = [rest] if rest else [], len(rest), False
        yield from lines

    def response(self, handle: pycurl.Curl, cut: str = "") -> Response:
        status = self._status or int(handle.getinfo(pycurl.RESPONSE_CODE))
        return Response(status, b"".join(self._parts), self._retry_after, cut)


def _pause(multi: pycurl.CurlMulti, most: float) -> None:
    """Wait until a connection is ready or libcurl has something to do, for ``most`` seconds at most."""
    wanted = multi.timeout()  # milliseconds; -1: nothing to do by itself
    most = max(0.0, min(most, _MOST_PAUSE, wanted / 1000 if wanted >= 0 else _MOST_PAUSE))
    if multi.select(most) < 0:  # no connection yet
        time.sleep(min(most, 0.01))


def _ended(multi: pycurl.CurlMulti) -> Iterator[tuple[pycurl.Curl, tuple[int, str] | None]]:
    more = 1
    while more:
        more, done, failed = multi.info_read()
        yield from ((handle, None) for handle in done)
        yield from ((handle, (code, text)) for handle, code, text in failed)


def _by_other_name(handle: pycurl.Curl, url: str, name: str, headers: list[str]) -> str:
    """The address with the name that the server's certificate has; libcurl connects to the other one."""
    parts = urlsplit(url)
    port = parts.port or 443
    headers.append(f"Host: {parts.netloc}")
    handle.setopt(pycurl.CONNECT_TO, [f"{name}:{port}:{parts.hostname}:{port}"])
    return parts._replace(netloc=f"{name}:{port}").geturl()


def _secure(handle: pycurl.Curl, config: Config, who: Credentials) -> None:
    if who.certificate:
        handle.setopt(pycurl.SSLCERT_BLOB, who.certificate)
        handle.setopt(pycurl.SSLKEY_BLOB, who.key)
    if config.insecure:
        handle.setopt(pycurl.SSL_VERIFYPEER, 0)
        handle.setopt(pycurl.SSL_VERIFYHOST, 0)
    elif config.ca:
        handle.setopt(pycurl.CAINFO_BLOB, config.ca)
        handle.unsetopt(pycurl.CAPATH)  # these alone
    else:
        import ssl  # here: it takes 15 ms, and few kubeconfigs are without certificates

        paths = ssl.get_default_verify_paths()
        if paths.cafile and Path(paths.cafile).is_file():
            handle.setopt(pycurl.CAINFO, paths.cafile)
        elif paths.capath and Path(paths.capath).is_dir():
            handle.setopt(pycurl.CAPATH, paths.capath)
        else:
            handle.setopt(pycurl.SSL_OPTIONS, pycurl.SSLOPT_NATIVE_CA)


def _is_local(server: str) -> bool:
    return urlsplit(server).hostname in ("localhost", "127.0.0.1", "::1")


_PROXY_ERROR = 97
"""CURLE_PROXY, for which pycurl has no name."""
_CERTIFICATES = (pycurl.E_SSL_CERTPROBLEM, pycurl.E_SSL_CACERT_BADFILE, pycurl.E_SSL_CIPHER)


def _failed(config: Config, error: tuple[int, str]) -> ConnectionFailed | ConfigError:
    """A sentence on an error of libcurl."""
    code, text = error
    if code == pycurl.E_PEER_FAILED_VERIFICATION:
        return ConnectionFailed(f"The certificate of {config.server} is not the one of the kubeconfig: {text}.")
    if code in _CERTIFICATES:
        return ConfigError(f"The certificates of the kubeconfig cannot be used: {text}.")
    if code == pycurl.E_SSL_CONNECT_ERROR:
        return ConnectionFailed(f"TLS with {config.server} fails: {text}.")
    if code in (pycurl.E_COULDNT_RESOLVE_PROXY, _PROXY_ERROR):
        return ConnectionFailed(f"The proxy of the kubeconfig or of HTTPS_PROXY does not answer: {text}.")
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return ConnectionFailed(f"The cluster at {config.server} does not answer in time.")
    return ConnectionFailed(f"The cluster at {config.server} does not answer: {text}.")
