"""A thin API client: the connection of the kubernetes client with plain JSON instead of models.

The kubernetes client handles kubeconfig files, rotating in-cluster tokens, TLS and proxies. Its generated API is
not used, because deserializing each object into a model costs far more than the rest of the processing.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException

from dljob_operator import logs
from dljob_operator.engine.rbac import with_rule

_LOG = logging.getLogger(__name__)
_CONNECT_TIMEOUT, _READ_TIMEOUT = 10.0, 60.0
_CONNECTIONS = 32
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class ApiError(Exception):
    """The API server returned an error. `status` is the HTTP code; the message is the server's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ApiConnectionError(Exception):
    """There was no complete response: no connection, a timeout, or an interrupted response."""


class NoCluster(Exception):
    """No usable cluster is configured; the message names the file that was read."""


def find_kubeconfig(given: str | None, environ: Mapping[str, str]) -> Path | None:
    """Return the kubeconfig to use: `given`, else KUBECONFIG, else None within a pod, else the user's."""
    named = given or environ.get("KUBECONFIG")
    if named:
        return Path(named).expanduser().resolve()
    if "KUBERNETES_SERVICE_HOST" in environ and _SERVICE_ACCOUNT.exists():
        return None
    return Path("~/.kube/config").expanduser()


class KubeApi:
    """Sends requests to one API server. It is safe to use from several threads."""

    def __init__(self, api_client: client.ApiClient) -> None:
        self._configuration = api_client.configuration
        self._pool: urllib3.PoolManager = api_client.rest_client.pool_manager
        self._headers = {"Accept": "application/json", "User-Agent": "dljob-operator"}

    @classmethod
    def connect(cls, kubeconfig: Path | None) -> KubeApi:
        """Connect to the cluster of `kubeconfig`, or for None to the cluster that this pod runs in.

        Raises NoCluster if the configuration is unusable.
        """
        configuration = client.Configuration()
        try:
            if kubeconfig is not None:
                config.load_kube_config(config_file=str(kubeconfig), client_configuration=configuration)
            else:
                config.load_incluster_config(client_configuration=configuration)
        except (ConfigException, OSError) as error:
            where = kubeconfig or "the pod's service account"
            message = f"no cluster configuration ({where}: {error}); set --kubeconfig or KUBECONFIG"
            raise NoCluster(message) from None
        configuration.connection_pool_maxsize = _CONNECTIONS
        if not configuration.verify_ssl:
            _LOG.warning(
                "the server's certificate is not verified, because insecure-skip-tls-verify is set",
                extra=logs.fields(server=configuration.host),
            )
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # log it once, not for each request
        return cls(client.ApiClient(configuration))

    @property
    def server(self) -> str:
        return str(self._configuration.host)

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.request("GET", path, query=query)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        """Return the decoded response. Raises ApiError for an error response and ApiConnectionError for none."""
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        with self._open(method, path, query, _READ_TIMEOUT, data, content_type) as response:
            return _decode(response.read())

    @contextlib.contextmanager
    def watch(self, path: str, query: Mapping[str, Any], quiet_for: float) -> Iterator[WatchStream]:
        """Open a watch. It ends when the server closes it, or when no data arrives for `quiet_for` seconds."""
        with self._open("GET", path, {**query, "watch": "true"}, quiet_for) as response:
            yield WatchStream(response)

    @contextlib.contextmanager
    def _open(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        read_timeout: float,
        data: bytes | None = None,
        content_type: str = "application/json",
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        url = self._configuration.host + path + (f"?{urlencode(query)}" if query else "")
        headers = dict(self._headers)
        for setting in self._configuration.auth_settings().values():
            if setting["in"] == "header":
                headers[setting["key"]] = setting["value"]
        if data is not None:
            headers["Content-Type"] = content_type
        timeout = urllib3.Timeout(connect=_CONNECT_TIMEOUT, read=read_timeout)
        try:
            response = self._pool.request(
                method, url, headers=headers, body=data, preload_content=False, timeout=timeout, retries=False
            )
            try:
                if response.status >= 400:
                    raise ApiError(response.status, with_rule(_error_message(response)))
                yield response
            finally:
                # A response that was read completely has returned its connection to the pool; close all others.
                response.close()
        except urllib3.exceptions.HTTPError as error:
            raise ApiConnectionError(f"{method} {self.server}{path}: {error}") from error


class WatchStream:
    """The events of one open watch."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self._stopped = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each watch event as decoded JSON until the server closes the watch or another thread calls `stop`.

        Raises ApiConnectionError if the connection breaks or no data arrives for too long.
        """
        pending = b""
        try:
            for chunk in self._response.stream(amt=None, decode_content=False):
                lines = (pending + chunk).split(b"\n")
                pending = lines.pop()
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
        except urllib3.exceptions.HTTPError as error:
            if not self._stopped:
                raise ApiConnectionError(f"watch: {error}") from error
        finally:
            self._response.close()

    def stop(self) -> None:
        """End the iteration, from any thread."""
        self._stopped = True
        # These errors mean that the watch has just ended by itself.
        with contextlib.suppress(ValueError, RuntimeError, OSError):
            self._response.shutdown()


def _decode(data: bytes) -> dict[str, Any]:
    decoded = json.loads(data) if data else {}
    return decoded if isinstance(decoded, dict) else {"items": decoded}


def _error_message(response: urllib3.BaseHTTPResponse) -> str:
    """Return the message of the Status object in an error response, or else the text of the response."""
    text = response.read().decode(errors="replace")
    with contextlib.suppress(ValueError):
        status = json.loads(text)
        if isinstance(status, dict) and status.get("message"):
            return str(status["message"])
    return text.strip() or f"HTTP {response.status}"
