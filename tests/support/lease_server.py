"""A server that has one Lease, as the API server would, and can be made to misbehave."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kubernetes import client

from dljob_operator.engine.kube import KubeApi
from support.scripted_server import Exchange, scripted


class LeaseServer:
    """Requests for the Lease are answered by `fault` instead, once that is set. `url` is its address."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Exchange] = []
        self.lease: dict[str, Any] | None = None
        self.fault: Callable[[Exchange], None] | None = None
        self._lock = threading.Lock()
        self._version = 0

    def connect(self) -> KubeApi:
        return KubeApi(client.ApiClient(client.Configuration(host=self.url)))

    def write(self, lease: dict[str, Any] | None) -> None:
        """Replace the Lease, as another client would."""
        with self._lock:
            self._store(lease)

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""

    def written(self, path_end: str = "") -> list[Exchange]:
        """The requests that write, in order."""
        return [one for one in self.requests if one.method != "GET" and one.path.endswith(path_end)]

    def respond(self, exchange: Exchange) -> None:
        if "/leases" not in exchange.path:
            return exchange.answer({})
        if self.fault is not None:
            return self.fault(exchange)
        return exchange.answer(*self.result(exchange))

    def result(self, exchange: Exchange) -> tuple[dict[str, Any], int]:
        """Do what was requested; return the response and its status."""
        with self._lock:
            if exchange.method == "GET":
                return (self.lease, 200) if self.lease else ({"reason": "NotFound"}, 404)
            given = exchange.body["metadata"].get("resourceVersion")
            if given != (self.lease["metadata"]["resourceVersion"] if self.lease else None):
                return {"reason": "Conflict", "message": "the object has been modified"}, 409
            return self._store(exchange.body), 200

    def _store(self, lease: dict[str, Any] | None) -> dict[str, Any]:
        self._version += 1
        self.lease = copy.deepcopy(lease)
        if self.lease:
            self.lease["metadata"]["resourceVersion"] = str(self._version)
        return self.lease or {}


@contextmanager
def lease_server() -> Iterator[LeaseServer]:
    made = LeaseServer()
    with scripted(made.respond) as server:
        made.url, made.requests = server.url, server.requests
        yield made


def held_by(holder: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "dljob-operator"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 1, **spec},
    }
