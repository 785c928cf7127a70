"""A connection to the API server: how both REST clients encode, authorize and send a request.

The kubernetes client does what is hard to get right: kubeconfig, exec plugins, token refresh, TLS, the connection pool.
Its generated methods are not used: they build model objects from every response, which costs more than a reconcile,
and their signatures differ between the supported versions (33 to 37).

Each REST client reads the responses and chooses the timeouts itself, and each chooses its cluster configuration: see
their docstrings for the reasons.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import urllib3
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MANAGER
from kubernetes import client

CREDENTIALS_TTL = 1.0
"""Seconds for which the credentials are cached. The library renews them when they expire, but it evaluates its whole
configuration on every query, which at each request would take a twelfth of the cost of a reconcile."""

STEPS = 2
"""Steps of opening a connection, TCP and TLS, for each of which urllib3 waits as long as it may for a connection."""

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``path`` begins with "/"; ``body`` is anything that JSON can encode, ``None`` for no body."""

    method: str
    path: str
    body: Any = None
    query: Mapping[str, Any] | None = None
    content_type: str = JSON
    """The content type of the body."""
    accept: str = JSON


class Connection:
    """Sends requests over the connection pool of a kubernetes client. It is thread-safe."""

    def __init__(self, api: client.ApiClient) -> None:
        self._configuration = api.configuration
        self.pool: urllib3.PoolManager = api.rest_client.pool_manager
        self._direct: tuple[urllib3.HTTPConnectionPool, str] | None = None
        self._credentials: dict[str, str] = {}
        self._credentials_until = 0.0

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return str(self._configuration.host)

    def send(
        self, request: Request, credentials: Mapping[str, str] | None = None, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        """Return the response, whatever its status. ``options`` are those of urllib3's ``request``.

        A caller that compares a deadline just before has asked for the ``credentials``, which may take their time.
        Raises :class:`urllib3.exceptions.HTTPError` where there is no response.
        """
        path = request.path + (f"?{urlencode(request.query)}" if request.query else "")
        headers = {
            "Accept": request.accept,
            "User-Agent": MANAGER,
            **(self.credentials() if credentials is None else credentials),
        }
        data = None
        if request.body is not None:
            headers["Content-Type"] = request.content_type
            data = json.dumps(request.body, separators=(",", ":")).encode()
        if self.pool.proxy is not None:  # which needs the whole URL, or a tunnel
            return self.pool.request(request.method, self.server + path, body=data, headers=headers, **options)
        pool, prefix = self._server_pool()
        return pool.request(request.method, prefix + path, body=data, headers=headers, **options)

    def _server_pool(self) -> tuple[urllib3.HTTPConnectionPool, str]:
        """The connections to the server, and the path of its URL. It is the same pool each time, and to find it by the
        URL would take a seventh of the cost of a request."""
        if self._direct is None:
            path = urllib3.util.parse_url(self.server).path or ""
            self._direct = self.pool.connection_from_url(self.server), path.rstrip("/")
        return self._direct

    def credentials(self) -> dict[str, str]:
        """The headers that authorize a request. The library may run a program of the kubeconfig to renew them."""
        if time.monotonic() >= self._credentials_until:
            settings = self._configuration.auth_settings().values()
            self._credentials = {s["key"]: s["value"] for s in settings if s["in"] == "header" and s["value"]}
            self._credentials_until = time.monotonic() + CREDENTIALS_TTL  # not before a program that takes longer
        return self._credentials
