"""The connection to the API server: the kubernetes client's configuration and connection pool, and JSON on it.

The client's generated methods are passed by on purpose: they build model objects out of every answer, which costs more
than the reconcile itself, and their signatures differ between the versions that are supported (33 to 37). What is hard
to get right stays the library's: kubeconfig, exec plugins, token refresh, TLS, the pool.
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
"""Requests under way at once: what an API server on two cores takes without slowing down (measured, see the design)."""

CREDENTIALS_HOLD = 1.0
"""Seconds after which the library is asked again for the credentials, which it renews when they get old. Asked at each
request it would take a twelfth of what a reconcile costs: it then works out anew the whole of its configuration."""

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class ApiError(Exception):
    """The API server's refusal. ``status`` is the HTTP status (0: no answer), ``reason`` its word (AlreadyExists)."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        super().__init__(f"{reason or status}: {message}")

    @property
    def permanent(self) -> bool:
        """Whether the same request can only be refused again: the object itself is at fault."""
        return self.status in (400, 422)


class RestClient:
    """JSON requests over a pool of kept connections. May be used by several threads."""

    def __init__(self, api: client.ApiClient, folder: str) -> None:
        self.client = api
        """The library's own client, for libraries that want one."""
        self._configuration = api.configuration
        self._pool: urllib3.PoolManager = api.rest_client.pool_manager
        # One more thread than connections waits for one. By default it would open another and throw it away after a
        # single request, which costs both sides more than the request does.
        self._pool.connection_pool_kw["block"] = True
        self._credentials: dict[str, str] = {}
        self._credentials_until = 0.0
        self.executor = BoundedExecutor(api.configuration.connection_pool_maxsize)
        """For requests that need not wait for each other."""
        self.folder = folder
        """For files that go with the connection."""

    def __enter__(self) -> RestClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and remove what was written to make them."""
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
        """One request; the answer as a dictionary. Raises :class:`ApiError`."""
        url = self._configuration.host + path + ("?" + urlencode(query) if query else "")
        headers = {"Accept": JSON, "User-Agent": "dljob-operator", **self._authorization()}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body).encode()
        try:
            answer = self._pool.request(method, url, body=data, headers=headers, timeout=TIMEOUT)
        except urllib3.exceptions.HTTPError as e:
            raise ApiError(0, "NoAnswer", f"{method} {path}: {e}") from e
        return _decode(answer.status, answer.data)

    def _authorization(self) -> dict[str, str]:
        now = time.monotonic()
        if now >= self._credentials_until:
            settings = self._configuration.auth_settings().values()
            self._credentials = {s["key"]: s["value"] for s in settings if s["in"] == "header" and s["value"]}
            self._credentials_until = now + CREDENTIALS_HOLD
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
    """Connect as ``kubectl`` would: the given kubeconfig, else the one that ``KUBECONFIG`` names, else the pod's own.

    ``connections`` is how many are kept open at once. To be used as a context manager: the library writes the
    certificates in a kubeconfig to files, and a forked Ansible worker never gets to its own clean-up at exit.
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
