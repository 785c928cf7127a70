"""A REST client for short requests that write, many at a time: the one of a reconcile.

The engine has a client of its own (``src/dljob_operator/engine/kube.py``), because it watches: it reads responses as
streams that another thread may stop, and must tell a lost connection from an error of the API server. This client reads
whole responses, repeats a request on a connection that the server has just closed, and limits the open connections.
Both send through :mod:`..shared.connection`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

import urllib3
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import JSON, Connection, Request
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError, decode
from ansible_collections.dljob.operator.plugins.module_utils.shared.write_deadline import WriteDeadline
from kubernetes import client, config

TIMEOUT = 30.0
"""Seconds for one request; the API server's own limit for a write is 60."""

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
        # A thread that finds no free connection waits for one. By default urllib3 would open another one and discard
        # it after a single request, which costs both sides more than the request does.
        self._connection.pool.connection_pool_kw["block"] = True
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
        if method != "GET" and self._deadline is not None and self._deadline.has_passed:
            raise ApiError(0, "NotLeading", f"{method} {path} was not sent: this operator is no longer the leader")
        try:
            response = self._connection.send(Request(method, path, body, query, content_type), timeout=TIMEOUT)
        except urllib3.exceptions.HTTPError as e:
            raise ApiError(0, "NoAnswer", f"{method} {path}: {e}") from e
        return decode(response.status, response.data)


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
