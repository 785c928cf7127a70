"""A fake API server that records writes and lists nothing, for tests of a whole reconcile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from support.builders import NOW, UID

Resource = dict[str, Any]


class Api(RestClient):
    """Accepts and records every write, and lists nothing, and has the job with its first spec.

    ``refuses`` maps a kind to the error of its creation.
    """

    def __init__(self, refuses: Mapping[str, ApiError] | None = None, present: Resource | None = None) -> None:
        self.executor = BoundedExecutor(2)
        self.status: Resource | None = None
        self.made: list[Resource] = []
        self._refuses = dict(refuses or {})
        self._present = present or {}

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method == "GET":
            return self._present or {"metadata": {"uid": UID, "generation": 1}, "items": []}
        if method == "PATCH" and path.endswith("/status"):
            self.status = next(part["value"] for part in body if part["path"] == "/status")
            return {"metadata": {"uid": UID, "resourceVersion": "9"}}
        if method == "DELETE":
            return {"kind": "Status"}
        assert method == "POST"
        if body["kind"] in self._refuses:
            raise self._refuses[body["kind"]]
        self.made.append(body)
        return {"metadata": {"uid": f"uid-{len(self.made)}", "resourceVersion": str(len(self.made))}}

    def kinds(self) -> list[str]:
        return sorted({body["kind"] for body in self.made})

    def events(self) -> list[str]:
        return [f"{body['reason']}: {body['message']}" for body in self.made if body["kind"] == "Event"]


def context_of(api: RestClient, dry_run: bool = False) -> Context:
    """With the cache that a test has published, if any, at the time of the other tests."""
    reader = Reader(api, cache_snapshot.current(), cache_snapshot.cluster_info())
    return Context(api, reader, dry_run=dry_run, clock=lambda: NOW)
