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
import time
from collections.abc import Mapping
from threading import BoundedSemaphore
from typing import Any

import urllib3
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import JSON, STEPS, Connection, Request
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError, decode
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import WriteDeadline
from kubernetes import client, config

TIMEOUT = 30.0
"""Seconds for one request; the API server's own limit for a write is 60."""

_TRIES = 4
_IDEMPOTENT = ("GET", "PUT", "DELETE")
_LOST = (urllib3.exceptions.ProtocolError, urllib3.exceptions.SSLError, urllib3.exceptions.ProxyError)
"""The errors after which these are repeated: the connection has closed. An API server that restarts closes all of them,
and some may be chosen before this is seen. What it does not answer within TIMEOUT is not repeated."""
_LONGEST_PAUSE = 1.0
"""Seconds for which a request waits where the API server asks for it. Its priority and fairness asks for one second."""

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
        for is_last in (*[False] * (_TRIES - 1), True):
            try:
                with self._free:
                    response = self._send(request)
            except urllib3.exceptions.HTTPError as e:
                if is_last or not _may_repeat(method, e):
                    raise ApiError(0, "NoAnswer", f"{method} {path}: {e}") from e
                continue
            pause = _pause(method, response)
            if is_last or pause is None:
                break
            time.sleep(pause)
        return decode(response.status, response.data)

    def refuse_after_deadline(self, what: str) -> float:
        """Return the seconds for which ``what``, a write, may be sent. Raises :class:`ApiError` if that is over."""
        left = math.inf if self._deadline is None else self._deadline.seconds_left
        if left <= 0:
            raise ApiError(0, "NotLeading", f"{what} was not sent: this operator is no longer the leader")
        return left

    def _send(self, request: Request) -> urllib3.BaseHTTPResponse:
        self._connection.credentials()  # a kubeconfig's program may take its time, so not after the comparison
        is_read = request.method == "GET"
        left = math.inf if is_read else self.refuse_after_deadline(f"{request.method} {request.path}")
        timeout = urllib3.Timeout(connect=min(TIMEOUT, left / STEPS), read=TIMEOUT)
        return self._connection.send(request, timeout=timeout, retries=False)


def _may_repeat(method: str, error: urllib3.exceptions.HTTPError) -> bool:
    """Whether to repeat a request that was not sent, or whose repetition does no harm."""
    is_unsent = isinstance(error, urllib3.exceptions.NewConnectionError)
    return is_unsent or (method in _IDEMPOTENT and isinstance(error, _LOST))


def _pause(method: str, response: urllib3.BaseHTTPResponse) -> float | None:
    """The seconds after which to repeat a request that the API server has not processed; None for an answer.

    It processes nothing that it answers with 429.
    """
    seconds = str(response.headers.get("Retry-After", ""))
    is_asked = response.status == 429 or (response.status == 503 and method in _IDEMPOTENT)
    if not is_asked or not seconds.isdecimal() or int(seconds) > _LONGEST_PAUSE:
        return None
    return float(seconds)


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
    configuration.retries = False  # of the library for Routes too
    return RestClient(client.ApiClient(configuration), folder, deadline)
