"""A connection to the API server: how both REST clients encode, authorize and send a request, and until when a write.

The kubernetes client does what is hard to get right: kubeconfig, exec plugins, token refresh, TLS, the connection pool.
Its generated methods are not used: they build model objects from every response, which costs more than a reconcile,
and their signatures differ between the supported versions (33 to 37).

Each REST client reads the responses, decides on repetitions and chooses its timeouts and its cluster configuration: see
their docstrings for the reasons.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import urllib3
from ansible_collections.dljob.operator.plugins.module_utils.shared import json_codec
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MANAGER
from kubernetes import client

CREDENTIALS_TTL = 1.0
"""Seconds for which the credentials are cached. The library renews them when they expire, but it evaluates its whole
configuration on every query, which at each request would take a twelfth of the cost of a reconcile."""

_STEPS = 2
"""Steps of opening a connection, TCP and TLS, for each of which urllib3 waits as long as it may for a connection."""

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
"""Of a response of which only the metadata is read: the API server then encodes no more."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request. ``path`` begins with "/"; ``body`` is anything that JSON can encode, ``None`` for no body."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, Any] | None = None
    content_type: str = JSON
    """The content type of the body."""
    accept: str = JSON

    @property
    def is_write(self) -> bool:
        """Whether only a leader may send it."""
        return self.method != "GET"

    @property
    def target(self) -> str:
        """The path with the query."""
        return self.path + (f"?{urlencode(self.query)}" if self.query else "")

    def encoded(self) -> bytes | None:
        """The body as JSON."""
        return None if self.body is None else json_codec.dumps(self.body)


class TooLate(Exception):
    """A ``write`` that was not sent, because another operator may be the leader."""

    def __init__(self, write: ApiRequest) -> None:
        super().__init__(f"{write.method} {write.path} was not sent: this operator is no longer the leader")


class Connection:
    """Sends requests over the ``pool`` of a kubernetes client, as its ``configuration`` says. It is thread-safe."""

    def __init__(self, api: client.ApiClient) -> None:
        self.configuration = api.configuration
        self.pool: urllib3.PoolManager = api.rest_client.pool_manager
        self._direct: tuple[urllib3.HTTPConnectionPool, str] | None = None
        self._credentials: dict[str, str] = {}
        self._credentials_until = 0.0

    def close(self) -> None:
        """Close urllib3's connections that are not in use."""
        self.pool.clear()
        if self._direct is not None:
            self._direct[0].close()

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return str(self.configuration.host)

    def headers(self, request: ApiRequest) -> dict[str, str]:
        """The headers of a request. It may run a program of the kubeconfig to renew the credentials."""
        made = {"Accept": request.accept, "User-Agent": MANAGER, **self._current_credentials()}
        if request.body is not None:
            made["Content-Type"] = request.content_type
        return made

    def send(
        self,
        request: ApiRequest,
        timeout: tuple[float, float],
        seconds_left: Callable[[], float],
        **options: Any,
    ) -> urllib3.BaseHTTPResponse:
        """Return the response, whatever its status.

        ``timeout`` has the seconds for each step of opening a connection, and those for the response; ``options`` are
        more options of urllib3's ``request``. A request other than GET is a write: :func:`check_deadline` is called
        with ``seconds_left`` right before it, once the credentials are renewed, which may take long. urllib3 repeats
        nothing, since it would not check the deadline again.

        Raises :class:`TooLate`, and :class:`urllib3.exceptions.HTTPError` where there is no response.
        """
        headers, data = self.headers(request), request.encoded()
        connect, read = timeout
        if request.is_write:
            connect = min(connect, check_deadline(seconds_left, request))
        within = urllib3.Timeout(connect=connect, read=read)
        options |= {"body": data, "headers": headers, "timeout": within, "retries": False}
        if self.pool.proxy is not None:  # which needs the whole URL, or a tunnel
            return self.pool.request(request.method, self.server + request.target, **options)
        pool, prefix = self._server_pool()
        return pool.request(request.method, prefix + request.target, **options)

    def _server_pool(self) -> tuple[urllib3.HTTPConnectionPool, str]:
        """The connections to the server, and the path of its URL. It is the same pool each time, and to find it by the
        URL would take a seventh of the cost of a request."""
        if self._direct is None:
            path = urllib3.util.parse_url(self.server).path or ""
            self._direct = self.pool.connection_from_url(self.server), path.rstrip("/")
        return self._direct

    def _current_credentials(self) -> dict[str, str]:
        """The headers that authorize a request. The library may run a program of the kubeconfig to renew them."""
        if time.monotonic() >= self._credentials_until:
            settings = self.configuration.auth_settings().values()
            self._credentials = {s["key"]: s["value"] for s in settings if s["in"] == "header" and s["value"]}
            self._credentials_until = time.monotonic() + CREDENTIALS_TTL  # not before a program that takes longer
        return self._credentials


def check_deadline(seconds_left: Callable[[], float], write: ApiRequest) -> float:
    """Return the seconds for each step of opening a connection for a ``write``, so that it is open in time.

    That holds for a server with one address and without a proxy. Raises :class:`TooLate` where none is left.
    """
    left = seconds_left()
    if left <= 0:
        raise TooLate(write)
    return left / _STEPS
