"""A proxy to the API server that records which permissions requests use.

It stands between a client and the server, speaks plain HTTP to the one and the server's TLS to the other, and leaves the
client's token as it is: what is allowed is decided by the server's own RBAC.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import urllib3

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "host", "content-length"}
_ITEM_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Right(NamedTuple):
    """As a rule of a Role grants it; `resource` has its subresource after a slash."""

    group: str
    resource: str
    verb: str


class Request(NamedTuple):
    right: Right
    namespace: str
    name: str


def request_of(method: str, url: str) -> Request | None:
    """What the API server's authorizer is asked about a request; None for discovery, which every account may do."""
    parts = urlsplit(url)
    path = parts.path.strip("/").split("/")
    if path[0] == "api":
        group, rest = "", path[2:]
    elif path[0] == "apis":
        group, rest = (path[1] if len(path) > 1 else ""), path[3:]
    else:
        return None
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    if not rest:
        return None
    resource, name, part = [*rest, "", ""][:3]
    if name:
        verb = _ITEM_VERBS[method]
    elif method == "GET":
        verb = "watch" if parse_qs(parts.query).get("watch") == ["true"] else "list"
    else:
        verb = {"POST": "create", "DELETE": "deletecollection"}[method]
    return Request(Right(group, f"{resource}/{part}" if part else resource, verb), namespace, name)


class Recorder:
    """`used` and `refused` are the requests that the server allowed and forbade."""

    def __init__(self, server: str, ca_file: str) -> None:
        self.used: Counter[Request] = Counter()
        self.refused: Counter[Request] = Counter()
        self.warnings: set[tuple[str, str, str]] = set()
        """Method, path and text of each response with a header Warning: a deprecated API, or an unknown field."""
        self.lost: set[Right] = set()
        """The first answer to each of these is lost: the client receives the answer to a second try."""
        self.broken: Counter[Right] = Counter()
        """How many requests more the server fails on."""
        self.unserved: set[str] = set()
        """API groups, with the version, that the client does not find."""
        self.lock = threading.Lock()
        self.server = server
        self.pool = urllib3.PoolManager(ca_certs=ca_file, maxsize=64)

    @property
    def rights(self) -> set[Right]:
        with self.lock:
            return {request.right for request in self.used}

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Listens on a port of its own; the address."""
        handler = type("Handler", (_Handler,), {"recorder": self})
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}"
            finally:
                server.shutdown()

    def note_warnings(self, method: str, path: str, texts: Iterable[str]) -> None:
        with self.lock:
            self.warnings.update((method, path, text) for text in texts)

    def note(self, request: Request | None, status: int) -> None:
        if request is not None:
            with self.lock:
                (self.refused if status == 403 else self.used)[request] += 1

    def breaks(self, request: Request | None) -> bool:
        with self.lock:
            if request is None or not self.broken[request.right]:
                return False
            self.broken[request.right] -= 1
            return True

    def loses(self, request: Request | None, status: int) -> bool:
        with self.lock:
            if request is None or status != 201 or request.right not in self.lost:
                return False
            self.lost.remove(request.right)
            return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    recorder: Recorder

    def do_GET(self) -> None:
        request = request_of(self.command, self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
        if "/".join(urlsplit(self.path).path.split("/")[2:4]) in self.recorder.unserved:
            self._say(404, "NotFound", "the server could not find the requested resource")
            return
        if self.recorder.breaks(request):
            self._say(500, "InternalError", "the test breaks it")
            return
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
        answer = self.recorder.pool.request(
            self.command,
            self.recorder.server + self.path,
            headers=headers,
            body=body,
            preload_content=False,
            decode_content=False,
            retries=False,
            timeout=urllib3.Timeout(connect=10, read=330),
        )
        try:
            self.recorder.note(request, answer.status)
            self.recorder.note_warnings(self.command, self.path, answer.headers.getlist("Warning"))
            if self.recorder.loses(request, answer.status):
                answer.read()
                self._say(409, "AlreadyExists", "it exists already")
                return
            self._pass_on(answer)
        except (OSError, urllib3.exceptions.HTTPError):
            self.close_connection = True  # one of the two has hung up
        finally:
            answer.close()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def _pass_on(self, answer: urllib3.BaseHTTPResponse) -> None:
        self.send_response(answer.status)
        for key, value in answer.headers.items():
            if key.lower() not in _HOP_BY_HOP:
                self.send_header(key, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in answer.stream(amt=None, decode_content=False):
            if chunk:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def _say(self, status: int, reason: str, message: str) -> None:
        body: dict[str, Any] = {"kind": "Status", "status": "Failure", "code": status, "reason": reason}
        data = json.dumps({**body, "message": message}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """The recorder is the log."""
