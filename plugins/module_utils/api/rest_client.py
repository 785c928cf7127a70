"""A REST client for the API server: JSON requests over the kubernetes client's configuration and connection pool.

It does not use the kubernetes client's generated methods: they build model objects from every response, which costs
more than the reconcile itself, and their signatures differ between the supported versions (33 to 37). The kubernetes
client still does what is hard to get right: kubeconfig, exec plugins, token refresh, TLS, the pool.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import urllib3
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from kubernetes import client, config

TIMEOUT = 30.0
"""Seconds for one request; the API server's own limit for a write is 60."""

CONNECTIONS = 8
"""Number of concurrent requests. An API server on two cores handles that many without slowing down (measured)."""

CREDENTIALS_TTL = 1.0
"""Seconds for which the credentials are cached. The library renews them when they expire, but it evaluates its whole
configuration on every query, which at each request would take a twelfth of the cost of a reconcile."""

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class ApiError(Exception):
    """A failed request. ``status`` is the HTTP status (0: no response), ``reason`` the API's reason (AlreadyExists)."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        super().__init__(f"{reason or status}: {message}")

    @property
    def permanent(self) -> bool:
        """Whether a retry of the same request cannot succeed, because the object is invalid."""
        return self.status in (400, 422)


class RestClient:
    """Sends JSON requests over a pool of persistent connections. It is thread-safe."""

    def __init__(self, api: client.ApiClient, folder: str) -> None:
        self.client = api
        """The kubernetes client, for libraries that need one."""
        self._configuration = api.configuration
        self._pool: urllib3.PoolManager = api.rest_client.pool_manager
        # A thread that finds no free connection waits for one. By default urllib3 would open another one and discard
        # it after a single request, which costs both sides more than the request does.
        self._pool.connection_pool_kw["block"] = True
        self._credentials: dict[str, str] = {}
        self._credentials_until = 0.0
        self.executor = BoundedExecutor(api.configuration.connection_pool_maxsize)
        """Runs independent requests in parallel."""
        self.folder = folder
        """Directory for temporary files; :meth:`close` removes it."""

    def __enter__(self) -> RestClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and remove the temporary files."""
        self.executor.close()
        self._pool.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        content_type: str = JSON,
    ) -> dict[str, Any]:
        """Send one request and return the decoded response. Raises :class:`ApiError`."""
        url = self._configuration.host + path + ("?" + urlencode(query) if query else "")
        headers = {"Accept": JSON, "User-Agent": "dljob-operator", **self._authorization()}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body).encode()
        try:
            response = self._pool.request(method, url, body=data, headers=headers, timeout=TIMEOUT)
        except urllib3.exceptions.HTTPError as e:
            raise ApiError(0, "NoAnswer", f"{method} {path}: {e}") from e
        return _decode(response.status, response.data)

    def _authorization(self) -> dict[str, str]:
        now = time.monotonic()
        if now >= self._credentials_until:
            settings = self._configuration.auth_settings().values()
            self._credentials = {s["key"]: s["value"] for s in settings if s["in"] == "header" and s["value"]}
            self._credentials_until = now + CREDENTIALS_TTL
        return self._credentials


def _decode(status: int, data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data) if data else {}
    except ValueError:
        content = {"message": data[:500].decode(errors="replace")}
    if 200 <= status < 300:
        return content
    raise ApiError(status, content.get("reason") or "", content.get("message") or f"HTTP status {status}")


def connect(kubeconfig: str | None = None, context: str | None = None, connections: int = CONNECTIONS) -> RestClient:
    """Connect like ``kubectl``: with the given kubeconfig, else ``KUBECONFIG``, else the pod's service account.

    ``connections`` limits the open connections. Use the result as a context manager: the library writes the
    certificates of a kubeconfig to files, and a forked Ansible worker does not run its exit handlers.
    """
    folder = tempfile.mkdtemp(prefix="dljob-credentials-")
    configuration = client.Configuration()
    try:
        try:
            config.load_kube_config(kubeconfig, context, configuration, persist_config=False, temp_file_path=folder)
        except config.ConfigException:
            if kubeconfig:
                raise
            config.load_incluster_config(configuration)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    configuration.connection_pool_maxsize = connections
    return RestClient(client.ApiClient(configuration), folder)
