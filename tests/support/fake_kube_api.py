"""The engine's API client, connected to the API server in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import JSON
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.watches import GVK
from support.fake_api_server import FakeApiServer, Fault, failure, no_answer

ECHO = GVK("example.com", "v1", "EchoJob")
ECHO_JOBS = ApiResource("/apis/example.com/v1", "echojobs")
JOBS, EVENTS = ("team", "echojobs"), ("team", "events")


def owned_pod(name: str, owner: str) -> dict[str, Any]:
    """A pod of the job with the uid `owner`, as a watch delivers it."""
    metadata = {"name": name, "namespace": JOBS[0], "uid": f"{name}-uid", "resourceVersion": "1"}
    return {"metadata": {**metadata, "ownerReferences": [{"uid": owner, "controller": True}]}}


class FakeKubeApi(KubeApi):
    """Sends requests for namespaced objects to `fake`."""

    def __init__(self) -> None:
        self.fake = FakeApiServer()

    def requests(self) -> list[str]:
        """The methods and resources of the requests so far, such as "PATCH echojobs/status"."""
        return [f"{call.method} {'/'.join(filter(None, (call.plural, call.subresource)))}" for call in self.fake.calls]

    def fail(self, method: str, status: int = 0, *, times: int = 1) -> None:
        """Answer the next `times` requests of a method with an error, or not at all for a `status` of 0."""
        response = failure(status, "", f"HTTP {status}") if status else no_answer()
        self.fake.faults.append(Fault(response, lambda call: call.method == method, times=times))

    def add_job(self, name: str = "digits", uid: str = "1", **fields: Any) -> dict[str, Any]:
        """Store a job; its metadata has the keys of `metadata`, too."""
        metadata = {"name": name, "namespace": "team", "uid": uid, "generation": 1, **fields.pop("metadata", {})}
        job = {"apiVersion": ECHO.api_version, "kind": ECHO.kind, "metadata": metadata, **fields}
        return self.fake.add(JOBS, job)

    def job(self, name: str = "digits") -> dict[str, Any]:
        return self.fake.objects[JOBS][name]

    def events(self) -> list[dict[str, Any]]:
        return list(self.fake.objects.get(EVENTS, {}).values())

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = JSON,
    ) -> dict[str, Any]:
        try:
            return self.fake.request(method, path, body, query, content_type)
        except ApiError as error:
            if error.status == 0:
                raise ApiConnectionError(error.message) from None
            raise
