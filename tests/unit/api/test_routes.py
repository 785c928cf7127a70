"""What is written of Routes, without a cluster: the API server is a fake."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import routes
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import UID

COLLECTION = "/apis/route.openshift.io/v1/namespaces/ml/routes"
ROUTE = {
    "apiVersion": "route.openshift.io/v1",
    "kind": "Route",
    "metadata": {"name": "board"},
    "spec": {"to": {"kind": "Service", "name": "board"}, "port": {"targetPort": 80}},
}
OWN = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "shown", "uid": UID, "controller": True}
Write = tuple[str, str, Any]


class Api(RestClient):
    """Serves Routes, of which ``present`` is the one there is; ``errors`` fail a request by its method, or the GET of a
    path by its end."""

    def __init__(self, present: dict[str, Any] | None = None, **errors: ApiError) -> None:
        self.asked: list[str] = []
        self.written: list[Write] = []
        self._present, self._errors = present, errors

    def request(
        self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "application/json"
    ) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        self.asked.append(path)
        if error := self._errors.get(name if method == "GET" else method):
            raise error
        if method != "GET":
            self.written.append((method, path, body if method != "PATCH" else (content_type, body)))
            return {}
        if name != "board":
            return {}
        if self._present is None:
            raise ApiError(404, "NotFound", "no")
        return self._present


def present(*owners: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "board", "namespace": "ml", "uid": "r", "ownerReferences": list(owners)}
    return {"metadata": metadata, "spec": {**ROUTE["spec"], **spec}}


PATCH = {**ROUTE, "metadata": {"name": "board", "uid": "r"}}
DELETION = {
    "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "r"}, "propagationPolicy": "Background",
}  # fmt: skip
WANTED, STALE = Plan(routes=(ROUTE,)), Plan(stale_routes=("board",))


@pytest.mark.parametrize(
    ("plan", "there", "expected"),
    [
        pytest.param(WANTED, None, [("POST", COLLECTION, ROUTE)], id="missing"),
        pytest.param(WANTED, present(OWN), [], id="as it should be"),
        pytest.param(WANTED, present(OWN, host="a.example.com"), [], id="with a field that a user has set"),
        pytest.param(
            WANTED,
            present(OWN, to={"kind": "Service", "name": "other"}),
            [("PATCH", f"{COLLECTION}/board", ("application/merge-patch+json", PATCH))],
            id="changed",
        ),
        pytest.param(STALE, present(OWN), [("DELETE", f"{COLLECTION}/board", DELETION)], id="stale"),
        pytest.param(STALE, present(), [], id="stale, but somebody else's"),
        pytest.param(STALE, None, [], id="stale and gone"),
        pytest.param(Plan(), present(OWN), [], id="no Route is planned"),
    ],
)
def test_what_is_written(plan: Plan, there: dict[str, Any] | None, expected: list[Write]) -> None:
    api = Api(there)
    assert routes.ensure(api, plan, "ml", UID) == []
    assert api.written == expected


def test_a_plan_without_routes_asks_for_nothing() -> None:
    api = Api()
    routes.ensure(api, Plan(), "ml", UID)
    assert api.asked == []


@pytest.mark.parametrize("plan", [WANTED, STALE])
def test_a_dry_run_writes_no_route(plan: Plan) -> None:
    api = Api(present(OWN))
    assert routes.ensure(api, plan, "ml", UID, dry_run=True) == []
    assert api.written == []


@pytest.mark.parametrize("status", [403, 404])
def test_a_cluster_without_routes_is_no_error(status: int) -> None:
    api = Api(v1=ApiError(status, "No", "no"))
    assert routes.ensure(api, WANTED, "ml", UID) == []
    assert api.written == []


def test_a_route_of_somebody_else_is_reported_and_left() -> None:
    api = Api(present())
    (problem,) = routes.ensure(api, WANTED, "ml", UID)
    assert problem.startswith("Route: board: a Route of that name exists and does not belong to this job")
    assert api.written == []


@pytest.mark.parametrize(
    ("plan", "there", "method"),
    [
        (WANTED, None, "POST"),
        (WANTED, present(OWN, to={"name": "other"}), "PATCH"),
        (STALE, present(OWN), "DELETE"),
    ],
)
def test_an_error_of_a_write_is_reported(plan: Plan, there: dict[str, Any] | None, method: str) -> None:
    api = Api(there, **{method: ApiError(0, "NotLeading", "not sent")})
    assert routes.ensure(api, plan, "ml", UID) == ["Route: not sent"]


def test_a_stale_route_that_is_gone_meanwhile_is_no_error() -> None:
    assert routes.ensure(Api(present(OWN), DELETE=ApiError(404, "NotFound", "no")), STALE, "ml", UID) == []


@pytest.mark.parametrize("request_", ["v1", "board"])
def test_an_error_of_the_api_server_is_reported(request_: str) -> None:
    api = Api(**{request_: ApiError(500, "InternalError", "etcd is away")})
    assert routes.ensure(api, WANTED, "ml", UID) == ["Route: etcd is away"]
    assert api.written == []
