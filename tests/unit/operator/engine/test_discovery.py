"""The API path of a kind, and the paths of its objects."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.discovery import EVENTS, NODES, ApiResource, find_api_resource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.watches import GVK

SERVED = {
    "/apis/example.com/v1": [
        {"kind": "EchoJob", "name": "echojobs/status", "namespaced": True},
        {"kind": "EchoJob", "name": "echojobs", "namespaced": True},
        {"kind": "EchoPool", "name": "echopools", "namespaced": False},
        {"kind": "Scale", "name": "echojobs/scale", "namespaced": True},
    ],
    "/api/v1": [{"kind": "Pod", "name": "pods", "namespaced": True}],
}


class Api(KubeApi):
    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def request(self, method: str, path: str, *_: Any, **__: Any) -> dict[str, Any]:
        if self._error:
            raise self._error
        if path not in SERVED:
            raise ApiError(404, "NotFound", path)
        return {"resources": SERVED[path]}


@pytest.mark.parametrize(
    ("gvk", "expected"),
    [
        (GVK("example.com", "v1", "EchoJob"), ApiResource("/apis/example.com/v1", "echojobs", True)),
        (GVK("example.com", "v1", "EchoPool"), ApiResource("/apis/example.com/v1", "echopools", False)),
        (GVK("", "v1", "Pod"), ApiResource("/api/v1", "pods", True)),
        (GVK("example.com", "v1", "Other"), None),
        (GVK("example.com", "v1", "Scale"), None),
        (GVK("example.com", "v2", "EchoJob"), None),
    ],
    ids=["namespaced", "cluster-scoped", "core", "no such kind", "only a subresource", "no such version"],
)
def test_the_resource_of_a_kind(gvk: GVK, expected: ApiResource | None) -> None:
    assert find_api_resource(Api(), gvk) == expected


@pytest.mark.parametrize("error", [ApiError(403, "Forbidden", "not yours"), ApiConnectionError("no answer")])
def test_a_kind_is_not_taken_for_missing_because_of_an_error(error: Exception) -> None:
    with pytest.raises(type(error)):
        find_api_resource(Api(error), GVK("example.com", "v1", "EchoJob"))


@pytest.mark.parametrize(
    ("resource", "namespace", "collection"),
    [
        (EVENTS, "team", "/api/v1/namespaces/team/events"),
        (EVENTS, "", "/api/v1/events"),
        (NODES, "team", "/api/v1/nodes"),
        (NODES, "", "/api/v1/nodes"),
    ],
)
def test_paths(resource: ApiResource, namespace: str, collection: str) -> None:
    assert resource.collection(namespace) == collection
    assert resource.item(namespace, "one") == f"{collection}/one"
