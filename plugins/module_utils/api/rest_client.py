"""A REST client for short requests that write, many at a time: the one of a reconcile.

The engine has a client of its own (``src/dljob_operator/engine/kube.py``), because it watches: it reads responses as
streams that another thread may stop, and must tell a lost connection from an error of the API server. This client reads
whole responses, repeats a request on a connection that the server has just closed, and limits the open connections.
Neither leaves repetitions to urllib3, which would send a write after the deadline of the leader. Both send through
:mod:`..shared.connection`.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Mapping
from threading import BoundedSemaphore
from typing import Any

import urllib3
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import JSON, Connection, Request
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError, decode
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import WriteDeadline
from kubernetes import client, config

TIMEOUT = 30.0
"""Seconds for one request; the API server's own limit for a write is 60."""

_IDEMPOTENT = ("GET", "PUT", "DELETE")
_TRIES = 4
"""Of a request with one of these methods, where the connection closes without a response. An API server that restarts
closes all of them, and some may be chosen before this is seen. What it does not answer in time is not repeated."""

CONNECTIONS = 32
"""Number of concurrent requests. An API server on two cores creates pods for 32 writers in two thirds of the time that
it takes for 8, and 64 gain nothing more (measured). A large job uses them while it delays no other; see :mod:`.budget`.
"""


class RestClient:
    """Sends JSON requests over a pool of persistent connections. It is thread-safe."""

    def __init__(self, api: client.ApiClient, folder: str, deadline: WriteDeadline | None = None) -> None:
        """After the ``deadline``, if there is one, only GET requests are sent."""
        self._deadline = deadline
        self.client = api
        """The kubernetes client, for libraries that need one."""
        self._connection = Connection(api)
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
        self._connection.pool.clear()
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
        request = Request(method, path, body, query, content_type)
        try:
            with self._free:
                response = self._send(request, _TRIES if method in _IDEMPOTENT else 1)
        except urllib3.exceptions.HTTPError as e:
            raise ApiError(0, "NoAnswer", f"{method} {path}: {e}") from e
        return decode(response.status, response.data)

    def _send(self, request: Request, tries: int) -> urllib3.BaseHTTPResponse:
        while True:
            timeout = urllib3.Timeout(connect=min(TIMEOUT, self._seconds_left(request)), read=TIMEOUT)
            try:
                return self._connection.send(request, timeout=timeout, retries=False)
            except urllib3.exceptions.ProtocolError:
                tries -= 1
                if not tries:
                    raise

    def _seconds_left(self, request: Request) -> float:
        """Until when the request may be sent. Raises :class:`ApiError` if that is over."""
        if request.method == "GET" or self._deadline is None:
            return math.inf
        left = self._deadline.seconds_left
        if left <= 0:
            text = f"{request.method} {request.path} was not sent: this operator is no longer the leader"
            raise ApiError(0, "NotLeading", text)
        return left


def connect(kubeconfig: str | None = None, context: str | None = None, connections: int = CONNECTIONS) -> RestClient:
    """Connect like ``kubectl``: with the given kubeconfig, else ``KUBECONFIG``, else the pod's service account.

    ``connections`` limits the open connections. The client stops writing at the deadline that an operator with
    ``--leader-elect`` has set for its workers. Use the result as a context manager: the library writes the
    certificates of a kubeconfig to files, and a forked Ansible worker does not run its exit handlers.
    """
    deadline = WriteDeadline.of_environment(os.environ)
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
    return RestClient(client.ApiClient(configuration), folder, deadline)
