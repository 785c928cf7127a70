"""A REST client for short requests that write, many at a time: the one of a reconcile.

The engine has a client of its own (``src/dljob_operator/engine/kube.py``), because it watches: it reads responses as
streams that another thread may stop, and must tell a lost connection from an error of the API server. This client reads
whole responses, repeats a request on a connection that the server has just closed, and limits the open connections.
Both send through :mod:`..shared.connection`, which leaves no repetition to urllib3.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from threading import BoundedSemaphore
from typing import Any

import urllib3
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.shared import cluster_config
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import (
    JSON,
    ApiRequest,
    Connection,
    TooLate,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError, decode
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import WriteDeadline
from kubernetes import client, config

TIMEOUT = 30.0
"""Seconds for one request; the API server's own limit for a write is 60."""

_TRIES = 4
_PATIENCE = 3.0
"""Seconds in which a repetition may be decided on, with the waits for a connection and for credentials. An API server
that restarts closes all connections, and some may be chosen before this is seen; one that is overloaded asks the client
to wait for 1 to 32 seconds."""
_IDEMPOTENT = ("GET", "PUT", "DELETE")

CONNECTIONS = 32
"""Number of concurrent requests. An API server on two cores creates pods for 32 writers in two thirds of the time that
it takes for 8, and 64 gain nothing more (measured). A large job uses them while it delays no other; see :mod:`.budget`.
"""


class RestClient:
    """Sends JSON requests over a pool of persistent connections. It is thread-safe."""

    def __init__(self, api: client.ApiClient, folder: str, deadline: WriteDeadline | None = None) -> None:
        """After the ``deadline``, if there is one, only GET requests are sent."""
        self._deadline = deadline
        self.connection = Connection(api)
        connections = api.configuration.connection_pool_maxsize
        self._free = BoundedSemaphore(connections)
        """Of the connections. By default urllib3 would open another one and discard it after a single request, which
        costs both sides more than the request does; or its pool would wait, also past the deadline."""
        self.executor = BoundedExecutor(connections)
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
        self.connection.pool.clear()
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
        request = ApiRequest(method, path, body, query, content_type)
        last_begin = time.monotonic() + _PATIENCE
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._free:
                    response = self.connection.send(request, (TIMEOUT, TIMEOUT), self._seconds_left)
                pause = _pause(method, response)
            except TooLate as e:
                raise ApiError(0, "NotLeading", str(e)) from e
            except urllib3.exceptions.HTTPError as e:
                if not tries_left or time.monotonic() > last_begin or not _may_repeat(method, e):
                    raise ApiError(0, "NoAnswer", f"{method} {path}: {e}") from e
                continue
            if not tries_left or pause is None or time.monotonic() + pause > last_begin:
                break
            time.sleep(pause)
        return decode(response.status, response.data)

    def _seconds_left(self) -> float:
        return math.inf if self._deadline is None else self._deadline.seconds_left


def _may_repeat(method: str, error: Exception) -> bool:
    """Whether to repeat a request that was not sent, or that failed and whose repetition does no harm.

    What is not answered in time is not repeated.
    """
    if isinstance(error, urllib3.exceptions.ProxyError):
        error = error.original_error
    if isinstance(error, urllib3.exceptions.NewConnectionError):
        return True
    return method in _IDEMPOTENT and not isinstance(error, urllib3.exceptions.TimeoutError)


def _pause(method: str, response: urllib3.BaseHTTPResponse) -> float | None:
    """The seconds for which the API server asks to wait before the request is repeated; None for an answer.

    A creation or a patch that gets such an answer is not repeated: the job may be deleted or suspended meanwhile.
    """
    seconds = str(response.headers.get("Retry-After", ""))
    is_asked = method in _IDEMPOTENT and response.status in (429, 503) and seconds.isdecimal()
    return float(seconds) if is_asked else None


def connect(kubeconfig: str | None = None, context: str | None = None, connections: int = CONNECTIONS) -> RestClient:
    """Connect like ``kubectl``: with the given kubeconfig, else ``KUBECONFIG``, else the pod's service account.

    ``connections`` limits the open connections. The client stops writing at the deadline that an operator with
    ``--leader-elect`` has set for its workers. Use the result as a context manager: the library writes the
    certificates of a kubeconfig to files, and a forked Ansible worker does not run its exit handlers.
    """
    deadline = WriteDeadline.of_environment(os.environ)
    folder = tempfile.mkdtemp(prefix="dljob-credentials-")
    try:
        try:
            configuration = cluster_config.from_kubeconfig(
                kubeconfig, context, persist_config=False, temp_file_path=folder
            )
        except config.ConfigException:
            if kubeconfig:
                raise
            configuration = cluster_config.from_service_account()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    configuration.connection_pool_maxsize = connections
    return RestClient(client.ApiClient(configuration), folder, deadline)
