"""A REST client for short requests that write, many at a time: the one of a reconcile.

The engine has a client of its own (``src/dljob_operator/engine/kube.py``), because it watches: it reads responses as
streams that another thread may stop, and must tell a lost connection from an error of the API server. This client reads
whole responses, repeats a request as :mod:`.attempts` says, and limits the open connections. It sends by libcurl where
pycurl is installed (:mod:`.transfers`), else by urllib3 in several threads. Both get headers, credentials and the time
limit of writes from :mod:`..shared.connection`.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from threading import BoundedSemaphore
from typing import Any, TypeVar

import urllib3
from ansible_collections.dljob.operator.plugins.module_utils.api import transfers
from ansible_collections.dljob.operator.plugins.module_utils.api.attempts import NoResponse, Response, answered
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import Result, Steps, drive, resolve
from ansible_collections.dljob.operator.plugins.module_utils.api.transfers import Transfers
from ansible_collections.dljob.operator.plugins.module_utils.shared import cluster_config
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import (
    JSON,
    ApiRequest,
    Connection,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import WriteDeadline
from kubernetes import client, config

Item = TypeVar("Item")
TIMEOUT = 30.0
"""Seconds for one request; the API server's own limit for a write is 60."""

CONNECTIONS = 32
"""Number of concurrent requests. An API server on two cores creates pods for 32 writers in two thirds of the time that
it takes for 8, and 64 gain nothing more (measured). A large job uses them while it delays no other; see :mod:`.budget`.
"""


class RestClient:
    """Sends JSON requests over persistent connections. It is thread-safe."""

    _transfers: Transfers | None = None

    def __init__(self, api: client.ApiClient, folder: str, deadline: WriteDeadline | None = None) -> None:
        """After the ``deadline``, if there is one, only GET requests are sent."""
        self._deadline = deadline
        self.connection = Connection(api)
        connections = api.configuration.connection_pool_maxsize
        self._free = BoundedSemaphore(connections)
        """Of urllib3's connections. By default it would open another one and discard it after a single request, which
        costs both sides more than the request does; or its pool would wait, also past the deadline."""
        self.executor = BoundedExecutor(connections)
        """Runs independent requests in parallel."""
        if transfers.is_available:
            left = None if deadline is None else self._seconds_left
            self._transfers = Transfers(self.connection, connections, lambda: TIMEOUT, left)
        self.folder = folder
        """Directory for temporary files; :meth:`close` removes it."""

    def __enter__(self) -> RestClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and remove the temporary files."""
        self.executor.close()
        if self._transfers is not None:
            self._transfers.close()
        self.connection.close()
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
        steps = answered(ApiRequest(method, path, body, query, content_type))
        if self._transfers is None:
            return drive(steps, self._send, time.sleep)
        return self._transfers.one(steps)

    def run(self, steps: Steps[Result]) -> Result:
        """Run ``steps``, whose requests get decoded responses, or :class:`ApiError`."""
        if self._transfers is None:
            return drive(steps, self._ask, time.sleep)
        return self._transfers.one(resolve(steps, answered))

    def each(
        self,
        items: Sequence[Item],
        do: Callable[[Item], Steps[object]],
        at_once: Callable[[], float] = lambda: math.inf,
    ) -> None:
        """:meth:`run` the steps of each of ``items``, several at a time: see :meth:`.BoundedExecutor.map`."""
        if self._transfers is None:
            self.executor.map(items, lambda item: drive(do(item), self._ask, time.sleep), at_once)
        elif items:
            self._transfers.each((resolve(do(item), answered) for item in items), at_once)

    def _ask(self, request: ApiRequest) -> dict[str, Any]:
        return self.request(request.method, request.path, request.body, request.query, request.content_type)

    def _send(self, request: ApiRequest) -> Response:
        try:
            with self._free:
                response = self.connection.send(request, (TIMEOUT, TIMEOUT), self._seconds_left)
            return Response(response.status, response.data, str(response.headers.get("Retry-After", "")))
        except urllib3.exceptions.HTTPError as error:
            cause = error.original_error if isinstance(error, urllib3.exceptions.ProxyError) else error
            raise NoResponse(
                str(error),
                was_sent=not isinstance(cause, urllib3.exceptions.NewConnectionError),
                timed_out=isinstance(cause, urllib3.exceptions.TimeoutError),
            ) from error

    def _seconds_left(self) -> float:
        return math.inf if self._deadline is None else self._deadline.seconds_left


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
