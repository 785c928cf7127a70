"""The engine's API client, which watches.

A reconcile has a client of its own (the collection's `api/rest_client.py`) for many short writes at a time. This one
reads responses as streams, which another thread may stop, repeats no request, and opens as many connections as there
are watches. It reports a lost connection with an error of its own, after which a cache stays valid. Both send through
the collection's `shared/connection.py`. They also choose the cluster differently: the engine precedes ~/.kube/config by
the service account of its pod, and may write renewed credentials to the kubeconfig, which a run must not.
"""

from __future__ import annotations

import contextlib
import copy
import logging
import math
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import urllib3
from ansible_collections.dljob.operator.plugins.module_utils.shared import cluster_config
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import (
    JSON,
    ApiRequest,
    Connection,
    TooLate,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.delete_options import delete_options
from ansible_collections.dljob.operator.plugins.module_utils.shared.rbac import explain_denial
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import (
    ApiError,
    decode,
    error_of,
    is_success,
)
from kubernetes import client
from kubernetes.config.config_exception import ConfigException

from dljob_operator import logs
from dljob_operator.engine.cache.decoding import WHOLE, Decoding
from dljob_operator.engine.cache.nesting import outline_list, read_event

_LOG = logging.getLogger(__name__)
_CONNECT_TIMEOUT, _READ_TIMEOUT = 10.0, 60.0
_CONNECTIONS = 32
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds and probes after which the kernel ends a connection whose peer has vanished, as in client-go. Systems that
lack an option use their own value."""
_WATCH_MARGIN = 30.0
"""Seconds by which a watch may outlast the duration that was requested of the server."""
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class ApiConnectionError(Exception):
    """There was no complete response: no connection, a timeout, or an interrupted response."""


class NestedTooDeeply(RecursionError):
    """A response that the JSON library cannot decode."""

    def __init__(self, body: bytes) -> None:
        super().__init__("the response is nested too deeply")
        self.body = body


class UntrustedServer(ApiConnectionError):
    """The certificate of the API server is not one that this process trusts."""


class NotLeading(ApiConnectionError):
    """A write that was not sent, because another operator may be the leader."""


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
    """Sends requests to one API server over its `connection`. It is safe to use from several threads."""

    _decoding = WHOLE

    def __init__(self, api_client: client.ApiClient) -> None:
        self.connection = _connection(api_client)
        self.timeout = _READ_TIMEOUT
        """Seconds without a response after which a request has failed."""
        self._seconds_left: Callable[[], float] = lambda: math.inf

    def with_timeout(self, seconds: float) -> KubeApi:
        """Return an API that gives up a request after `seconds` without a response; watches have their own time."""
        other = copy.copy(self)
        other.timeout = seconds
        return other

    def with_own_connections(self) -> KubeApi:
        """Return an API that shares no connection, and so no dead one, with this one."""
        other = copy.copy(self)
        other.connection = _connection(client.ApiClient(self.connection.configuration))
        return other

    def decoding(self, decoding: Decoding) -> KubeApi:
        """Return an API whose lists and watches have only what `decoding` leaves."""
        other = copy.copy(self)
        other._decoding = decoding  # noqa: SLF001 - of this class
        return other

    def writing_while(self, seconds_left: Callable[[], float]) -> KubeApi:
        """Return an API that sends a request other than GET only while `seconds_left` returns more than 0.

        Nor does it send one on a connection that takes longer to open, if the server has one address and no proxy.
        """
        other = copy.copy(self)
        other._seconds_left = seconds_left  # noqa: SLF001 - of this class
        return other

    @classmethod
    def connect(cls, kubeconfig: Path | None) -> KubeApi:
        """Connect to the cluster of `kubeconfig`, or for None to the cluster that this pod runs in.

        Raises NoCluster if the configuration is unusable.
        """
        try:
            if kubeconfig is not None:
                configuration = cluster_config.from_kubeconfig(str(kubeconfig))
            else:
                configuration = cluster_config.from_service_account()
                configuration.refresh_api_key_hook = _read_token  # type: ignore[assignment]  # declared as None
        except (ConfigException, OSError, ValueError) as error:
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
        return self.connection.server

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.request("GET", path, query=query)

    def list_objects(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """List like `get` objects that tenants write; see `nesting.outline_list` for what is nested too deeply."""
        try:
            return self.get(path, query)
        except NestedTooDeeply as error:
            return outline_list(error.body)

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = JSON,
    ) -> dict[str, Any]:
        """Return the decoded response.

        Raises ApiError for an error response, ApiConnectionError for none, and NestedTooDeeply.
        """
        with self._open(ApiRequest(method, path, body, query, content_type), self.timeout) as response:
            data = response.read()
        try:
            return decode(response.status, data, self._decoding.page)
        except RecursionError:
            raise NestedTooDeeply(data) from None

    def delete(self, path: str, uid: str, propagation: str = "Background") -> None:
        """Delete the object with this UID. It is no error if it is deleted already, or if another object has its name.

        Raises as `request`.
        """
        try:
            self.request("DELETE", path, delete_options(uid, propagation))
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    @contextlib.contextmanager
    def watch(self, path: str, query: Mapping[str, Any], quiet_for: float) -> Iterator[WatchStream]:
        """Open a watch. It ends when the server closes it, when no data arrives for `quiet_for` seconds, or soon after
        its `timeoutSeconds`, whatever the server sends."""
        longest = float(query.get("timeoutSeconds", math.inf)) + _WATCH_MARGIN
        with self._open(ApiRequest("GET", path, query={**query, "watch": "true"}), quiet_for) as response:
            yield WatchStream(response, time.monotonic() + longest, self._decoding.event)

    @contextlib.contextmanager
    def _open(self, request: ApiRequest, read_timeout: float) -> Iterator[urllib3.BaseHTTPResponse]:
        timeout = min(_CONNECT_TIMEOUT, read_timeout), read_timeout
        try:
            response = self.connection.send(request, timeout, self._seconds_left, preload_content=False)
            try:
                if not is_success(response.status):
                    error = error_of(response.status, response.read())
                    raise ApiError(error.status, error.reason, explain_denial(error.message))
                yield response
            finally:
                # A response that was read completely has returned its connection to the pool; close all others.
                response.close()
        except TooLate as error:
            raise NotLeading(str(error)) from error
        except urllib3.exceptions.HTTPError as error:
            kind = UntrustedServer if _is_untrusted(error) else ApiConnectionError
            raise kind(f"{request.method} {self.server}{request.path}: {error}") from error


def _read_token(configuration: client.Configuration) -> None:
    """Read the pod's token anew, as the kubelet replaces it.

    The library does that once a minute by the time of day: too late for a leader whose token was revoked, and not at
    all for an hour after the clock was set back by one. `Connection` calls this at most once a second.
    """
    try:
        token = _SERVICE_ACCOUNT.read_text().strip()
    except OSError as error:
        _LOG.warning("cannot read the token of the service account", extra=logs.fields(error=error))
        return
    if token:
        name = "BearerToken" if "BearerToken" in configuration.api_key else "authorization"  # the latter before 34
        configuration.api_key[name] = f"Bearer {token}"


def _connection(api_client: client.ApiClient) -> Connection:
    made = Connection(api_client)
    made.pool.connection_pool_kw["socket_options"] = _socket_options()
    return made


def _socket_options() -> list[tuple[int, int, int]]:
    ours = [
        (socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in _KEEPALIVE.items() if name in vars(socket)
    ]
    return [
        *urllib3.connection.HTTPConnection.default_socket_options,
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        *ours,
    ]


def _is_untrusted(error: urllib3.exceptions.HTTPError) -> bool:
    """Whether the certificate was refused. Other TLS errors may be those of a server that is starting or ending."""
    return isinstance(error, urllib3.exceptions.SSLError) and isinstance(error.args[0], ssl.SSLCertVerificationError)


class WatchStream:
    """The events of one open watch."""

    def __init__(
        self,
        response: urllib3.BaseHTTPResponse,
        deadline: float = math.inf,
        decode: Callable[[bytes], Any] = WHOLE.event,
    ) -> None:
        self._response = response
        self._decode = decode
        self._deadline = deadline
        self._stopped = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each watch event as decoded JSON until the server closes the watch or another thread calls `stop`.

        It ends at the first data after `deadline`, too. Raises ApiConnectionError if the connection breaks or no data
        arrives for too long.
        """
        pending = b""
        try:
            for chunk in self._response.stream(amt=None, decode_content=False):
                lines = (pending + chunk).split(b"\n")
                pending = lines.pop()
                for line in lines:
                    if line.strip():
                        yield read_event(line, self._decode)
                if time.monotonic() > self._deadline:
                    return
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
