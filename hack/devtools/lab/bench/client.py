"""The harness's API client, as cluster administrator, which is exempt from priority and fairness."""

from __future__ import annotations

import http.client
import json
import ssl
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any

from devtools.testbed.cluster.api import parse_kubeconfig

METADATA_ONLY = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
_TIMEOUT = 120.0


class Refused(Exception):
    """The API server rejected a request; ``status`` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Client:
    """A client with one persistent connection per thread."""

    def __init__(self, kubeconfig: Path) -> None:
        access = parse_kubeconfig(kubeconfig.read_text())
        self.authority = access.authority
        self.server = access.server
        self._context = ssl.create_default_context(cadata=access.authority)
        with tempfile.NamedTemporaryFile("w") as pair:  # the ssl module accepts only files
            pair.write(access.certificate + access.key)
            pair.flush()
            self._context.load_cert_chain(pair.name)
        self._url = urllib.parse.urlsplit(access.server)
        self._local = threading.local()

    def connection(self, timeout: float = _TIMEOUT) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            str(self._url.hostname), self._url.port or 443, context=self._context, timeout=timeout
        )

    def raw(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> tuple[int, bytes]:
        reused = hasattr(self._local, "connection")
        if not reused:
            self._local.connection = self.connection()
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            self._local.connection.request(method, path, data, {"Content-Type": content_type, "Accept": JSON})
            answer = self._local.connection.getresponse()
            return answer.status, answer.read()
        except BaseException as error:  # also an interruption, which leaves the rest of the response unread
            self._local.connection.close()
            del self._local.connection
            # The server has closed the idle connection, and has not processed the request.
            if reused and isinstance(error, ConnectionError):
                return self.raw(method, path, body, content_type)
            raise

    def text(self, path: str) -> str:
        return self.raw("GET", path)[1].decode()

    def request(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> dict[str, Any]:
        """Raises :class:`Refused`."""
        status, data = self.raw(method, path, body, content_type)
        if status >= 400:
            raise Refused(status, data[:500].decode(errors="replace"))
        return dict(json.loads(data))

    def exists(self, path: str) -> bool:
        return self.raw("GET", path)[0] == 200

    def ensure(self, collection: str, body: dict[str, Any]) -> None:
        """Create an object, unless it exists."""
        try:
            self.request("POST", collection, body)
        except Refused as refusal:
            if refusal.status != 409:
                raise

    def delete_all(self, collection: str, body: dict[str, Any], timeout: float) -> None:
        """Delete a collection, in several requests where one is too short for it: the API server ends it after 60 s,
        also in the middle of its response.

        Raises :class:`Refused` or :class:`http.client.IncompleteRead`, also where a request that begins after
        ``timeout`` seconds is too short.
        """
        deadline = time.monotonic() + timeout
        while True:
            is_last = time.monotonic() >= deadline
            try:
                self.request("DELETE", collection, body)
                return
            except (Refused, http.client.IncompleteRead) as error:
                if is_last or not _is_cut(error):
                    raise

    def each(self, calls: Sequence[tuple[str, str, Any, str]], width: int = 8) -> None:
        """Send requests, ``width`` at a time; raises the first error."""
        with ThreadPoolExecutor(width) as pool:
            list(pool.map(lambda call: self.request(*call), calls))

    def lines(self, connection: http.client.HTTPSConnection, path: str, accept: str = JSON) -> Iterator[bytes]:
        """The lines of a watch, until the server closes it or ``connection`` is shut down."""
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        if answer.status != 200:
            raise Refused(answer.status, answer.read(500).decode(errors="replace"))
        while line := answer.readline():
            yield line


def _is_cut(error: Refused | http.client.IncompleteRead) -> bool:
    """Whether the API server's limit of a request's time has ended it."""
    return not isinstance(error, Refused) or error.status == HTTPStatus.GATEWAY_TIMEOUT
