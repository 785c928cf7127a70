"""Connections to the API server with the administrator's certificate, and a JSON client that survives its restarts."""

from __future__ import annotations

import http.client
import json
import ssl
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from devtools.testbed.cluster.api import parse_kubeconfig

JSON = "application/json"
MERGE = "application/merge-patch+json"
_PATIENCE = 420.0
"""Seconds for which a request is repeated: the kubelet may restart the API server only after five minutes."""
_PAUSE = 0.5
_AGAIN = (403, 429, 500, 503, 504)
"""403 too: an API server that has just started forbids everything until it has read the RBAC rules."""


class Refused(Exception):
    """The API server rejected a request; ``status`` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Expired(Exception):
    """The API server no longer has the changes after this resource version."""


class Upstream:
    """The API server of a kubeconfig that kind wrote."""

    def __init__(self, kubeconfig: Path) -> None:
        access = parse_kubeconfig(kubeconfig.read_text())
        self._context = ssl.create_default_context(cadata=access.authority)
        with tempfile.NamedTemporaryFile("w") as pair:  # the ssl module accepts only files
            pair.write(access.certificate + access.key)
            pair.flush()
            self._context.load_cert_chain(pair.name)
        url = urllib.parse.urlsplit(access.server)
        self._host, self._port = str(url.hostname), url.port or 443

    def connect(self, timeout: float | None) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, context=self._context, timeout=timeout)


class Client:
    """Sends JSON requests. Each thread has its own connection."""

    def __init__(self, upstream: Upstream, patience: float = _PATIENCE) -> None:
        self._upstream = upstream
        self._patience = patience
        self._local = threading.local()

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = JSON, absent: tuple[int, ...] = (404, 409)
    ) -> dict[str, Any]:
        """The response; an empty one for a status in ``absent``. Raises Refused, and TimeoutError without an answer.

        A request without an answer is repeated, so that a creation may find its own object: 409 is no error.
        """
        deadline = time.monotonic() + self._patience
        while True:
            try:
                status, data = self._once(method, path, body, content_type)
            except (OSError, http.client.HTTPException) as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the API server did not answer {method} {path}: {error}") from error
                time.sleep(_PAUSE)
                continue
            if status in _AGAIN and time.monotonic() < deadline:
                time.sleep(_PAUSE)
                continue
            if status in absent:
                return {}
            if status >= 400:
                raise Refused(status, data[:500].decode(errors="replace"))
            return dict(json.loads(data))

    def items(self, path: str) -> list[dict[str, Any]]:
        return list(self.request("GET", path).get("items") or ())

    def watch(self, path: str, version: str, seconds: int = 60) -> Iterator[Mapping[str, Any]]:
        """The events after ``version`` until the watch ends. Raises Expired, and OSError for a lost connection."""
        connection = self._upstream.connect(seconds + 15)
        try:
            query = f"watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
            connection.request("GET", f"{path}?{query}")
            response = connection.getresponse()
            if response.status == 410:
                raise Expired
            if response.status != 200:
                raise ConnectionError(f"{response.status}")
            while line := response.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise Expired if event["object"].get("code") == 410 else ConnectionError(str(event["object"]))
                yield event
        except (http.client.HTTPException, ValueError) as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def _once(self, method: str, path: str, body: Any, content_type: str) -> tuple[int, bytes]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._upstream.connect(20)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": content_type, "Accept": JSON})
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            self._local.connection = None
            raise
