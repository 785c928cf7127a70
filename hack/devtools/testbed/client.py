"""The client of the API server for all tools, as cluster administrator, exempt from priority and fairness."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

METADATA_ONLY = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
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


@dataclass(frozen=True)
class Access:
    """An API server's address and its client certificate, as kind writes them into a kubeconfig (PEM)."""

    server: str
    authority: str
    certificate: str
    key: str


def parse_kubeconfig(text: str) -> Access:
    """Parse the current context; raises ValueError if it is not in the format that kind writes."""
    document = yaml.safe_load(text)
    try:
        context = {c["name"]: c["context"] for c in document["contexts"]}[document["current-context"]]
        cluster = {c["name"]: c["cluster"] for c in document["clusters"]}[context["cluster"]]
        user = {u["name"]: u["user"] for u in document["users"]}[context["user"]]
        return Access(
            cluster["server"],
            base64.b64decode(cluster["certificate-authority-data"]).decode(),
            base64.b64decode(user["client-certificate-data"]).decode(),
            base64.b64decode(user["client-key-data"]).decode(),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a kubeconfig with a client certificate: {error!r}") from error


class Client:
    """Sends JSON requests over one persistent connection per thread."""

    def __init__(self, kubeconfig: Path, *, patience: float = 0.0, timeout: float = 120.0) -> None:
        """``patience``: seconds for which a request is repeated while the API server is down or overloaded.
        ``timeout``: seconds that it may take to send or receive anything."""
        self.access = parse_kubeconfig(kubeconfig.read_text())
        self.context = ssl.create_default_context(cadata=self.access.authority)
        with tempfile.NamedTemporaryFile("w") as pair:  # the ssl module accepts only files
            pair.write(self.access.certificate + self.access.key)
            pair.flush()
            self.context.load_cert_chain(pair.name)
        self._url = urllib.parse.urlsplit(self.access.server)
        self._local = threading.local()
        self._patience = patience
        self._timeout = timeout

    def connect(self, timeout: float | None) -> http.client.HTTPSConnection:
        """A further connection, such as for a watch."""
        return http.client.HTTPSConnection(
            str(self._url.hostname), self._url.port or 443, context=self.context, timeout=timeout
        )

    def raw(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> tuple[int, bytes]:
        """The status and the body of the response. Raises OSError or HTTPException without one."""
        reused = hasattr(self._local, "connection")
        if not reused:
            self._local.connection = self.connect(self._timeout)
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

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = JSON, *, absent: Collection[int] = ()
    ) -> dict[str, Any]:
        """The response, an empty one for a status in ``absent``.

        Raises :class:`Refused`, and what :meth:`raw` raises. A request that is repeated may find what it created
        itself, so to a patient client 404 and 409 are no errors, and no response at all is a TimeoutError.
        """
        if self._patience:
            absent = (*absent, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
            status, data = self._patiently(method, path, body, content_type)
        else:
            status, data = self.raw(method, path, body, content_type)
        if status in absent:
            return {}
        if status >= 400:
            raise Refused(status, data[:500].decode(errors="replace"))
        return dict(json.loads(data))

    def _patiently(self, *call: Any) -> tuple[int, bytes]:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                status, data = self.raw(*call)
                if status not in _AGAIN or time.monotonic() > deadline:
                    return status, data
            except (OSError, http.client.HTTPException) as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the API server did not answer {call[0]} {call[1]}: {error}") from error
            time.sleep(_PAUSE)

    def text(self, path: str) -> str:
        return self.raw("GET", path)[1].decode()

    def items(self, path: str) -> list[dict[str, Any]]:
        return list(self.request("GET", path).get("items") or ())

    def exists(self, path: str) -> bool:
        return self.raw("GET", path)[0] == HTTPStatus.OK

    def ensure(self, collection: str, body: Mapping[str, Any]) -> None:
        """Create an object, unless it exists."""
        self.request("POST", collection, body, absent=(HTTPStatus.CONFLICT,))

    def each(self, calls: Sequence[tuple[str, str, Any, str]], width: int = 8) -> None:
        """Send requests, ``width`` at a time; raises the first error."""
        with ThreadPoolExecutor(width) as pool:
            list(pool.map(lambda call: self.request(*call), calls))

    def lines(self, connection: http.client.HTTPSConnection, path: str, accept: str = JSON) -> Iterator[bytes]:
        """The lines of a watch, until the server closes it or ``connection`` is shut down."""
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        if answer.status != HTTPStatus.OK:
            raise Refused(answer.status, answer.read(500).decode(errors="replace"))
        while line := answer.readline():
            yield line

    def watch(self, path: str, version: str, seconds: int = 60) -> Iterator[Mapping[str, Any]]:
        """The events after ``version`` until the watch ends. Raises Expired, and OSError for a lost connection."""
        connection = self.connect(seconds + 15)
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
        try:
            for line in self.lines(connection, f"{path}{'&' if '?' in path else '?'}{query}"):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise Refused(event["object"].get("code", 0), str(event["object"]))
                yield event
        except Refused as refusal:
            if refusal.status == HTTPStatus.GONE:
                raise Expired from refusal
            raise ConnectionError(str(refusal)) from refusal
        except (http.client.HTTPException, ValueError) as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()
