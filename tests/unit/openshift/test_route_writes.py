"""What is written of Routes, without a cluster: the OpenShift client and the API server are fakes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import openshift.dynamic
import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import routes
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan
from support.builders import UID

ROUTE = {
    "metadata": {"name": "board"},
    "spec": {"to": {"kind": "Service", "name": "board"}, "port": {"targetPort": 80}},
}
OWN = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "shown", "uid": UID, "controller": True}


class Api(RestClient):
    """Serves Routes, of which ``present`` is the one there is; ``errors`` fail a request by the end of its path."""

    def __init__(self, folder: str, present: dict[str, Any] | None = None, **errors: ApiError) -> None:
        self.client: Any = object()
        self.folder = folder
        self.asked: list[str] = []
        self._present, self._errors = present, errors

    def check_deadline(self, write: str) -> float:
        if "deadline" in self._errors:
            raise self._errors["deadline"]
        return 0.5

    def request(self, method: str, path: str, *_: Any, **__: Any) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        self.asked.append(path)
        if name in self._errors:
            raise self._errors[name]
        if name != "board":
            return {}
        if self._present is None:
            raise ApiError(404, "NotFound", "no")
        return self._present


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, Any]]:
    """The writes of the OpenShift client."""
    found: list[tuple[str, Any]] = []

    limits = {"_request_timeout": (0.5, 30.0)}

    class Client:
        def __init__(self, _: Any, cache_file: str) -> None:
            assert Path(cache_file).parent == tmp_path, "it is removed with the connection"
            self.resources = self

        def get(self, api_version: str, kind: str) -> Client:
            assert (api_version, kind) == ("route.openshift.io/v1", "Route")
            return self

        def create(self, body: Any, namespace: str, **options: Any) -> None:
            assert options == limits
            found.append(("create", (namespace, body["metadata"]["name"])))

        def patch(self, body: Any, namespace: str, content_type: str, **options: Any) -> None:
            assert options == limits
            metadata = body["metadata"]
            assert body["spec"] == ROUTE["spec"]
            found.append(("patch", (namespace, metadata["name"], metadata["uid"], content_type)))

        def delete(self, name: str, namespace: str, body: Any, **options: Any) -> None:
            assert options == limits
            found.append(("delete", (namespace, name, body["preconditions"])))

    monkeypatch.setattr(openshift.dynamic, "DynamicClient", Client)
    return found


def present(*owners: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "board", "namespace": "ml", "uid": "r", "ownerReferences": list(owners)}
    return {"metadata": metadata, "spec": {**ROUTE["spec"], **spec}}


WANTED, STALE = Plan(routes=(ROUTE,)), Plan(stale_routes=("board",))


@pytest.mark.parametrize(
    ("plan", "there", "expected"),
    [
        pytest.param(WANTED, None, [("create", ("ml", "board"))], id="missing"),
        pytest.param(WANTED, present(OWN), [], id="as it should be"),
        pytest.param(WANTED, present(OWN, host="a.example.com"), [], id="with a field that a user has set"),
        pytest.param(
            WANTED,
            present(OWN, to={"kind": "Service", "name": "other"}),
            [("patch", ("ml", "board", "r", "application/merge-patch+json"))],
            id="changed",
        ),
        pytest.param(STALE, present(OWN), [("delete", ("ml", "board", {"uid": "r"}))], id="stale"),
        pytest.param(STALE, present(), [], id="stale, but somebody else's"),
        pytest.param(STALE, None, [], id="stale and gone"),
        pytest.param(Plan(), present(OWN), [], id="no Route is planned"),
    ],
)
def test_what_is_written(
    written: list[tuple[str, Any]], tmp_path: Any, plan: Plan, there: dict[str, Any] | None, expected: list[Any]
) -> None:
    assert routes.ensure(Api(str(tmp_path), there), plan, "ml", UID) == []
    assert written == expected


def test_a_plan_without_routes_asks_for_nothing(written: list[Any], tmp_path: Any) -> None:
    api = Api(str(tmp_path))
    routes.ensure(api, Plan(), "ml", UID)
    assert api.asked == []


@pytest.mark.parametrize("plan", [WANTED, STALE])
def test_a_dry_run_writes_no_route(written: list[Any], tmp_path: Any, plan: Plan) -> None:
    assert routes.ensure(Api(str(tmp_path), present(OWN)), plan, "ml", UID, dry_run=True) == []
    assert written == []


@pytest.mark.parametrize("status", [403, 404])
def test_a_cluster_without_routes_is_no_error(written: list[Any], tmp_path: Any, status: int) -> None:
    assert routes.ensure(Api(str(tmp_path), v1=ApiError(status, "No", "no")), WANTED, "ml", UID) == []
    assert written == []


def test_a_route_of_somebody_else_is_reported_and_left(written: list[Any], tmp_path: Any) -> None:
    (problem,) = routes.ensure(Api(str(tmp_path), present()), WANTED, "ml", UID)
    assert problem.startswith("Route: board: a Route of that name exists and does not belong to this job")
    assert written == []


@pytest.mark.parametrize(
    ("plan", "there"), [(WANTED, None), (WANTED, present(OWN, to={"name": "other"})), (STALE, present(OWN))]
)
def test_after_the_deadline_of_the_leader_none_is_written(
    written: list[Any], tmp_path: Any, plan: Plan, there: dict[str, Any] | None
) -> None:
    api = Api(str(tmp_path), there, deadline=ApiError(0, "NotLeading", "not sent"))
    assert routes.ensure(api, plan, "ml", UID) == ["Route: not sent"]
    assert written == []


@pytest.mark.parametrize("request_", ["v1", "board"])
def test_an_error_of_the_api_server_is_reported(written: list[Any], tmp_path: Any, request_: str) -> None:
    api = Api(str(tmp_path), **{request_: ApiError(500, "InternalError", "etcd is away")})
    assert routes.ensure(api, WANTED, "ml", UID) == ["Route: etcd is away"]
    assert written == []


def test_any_error_of_the_client_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("discovery failed")

    monkeypatch.setattr(openshift.dynamic, "DynamicClient", fails)
    assert routes.ensure(Api(str(tmp_path)), WANTED, "ml", UID) == ["Route: discovery failed"]


def test_without_the_client_there_are_no_routes(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setitem(sys.modules, "openshift.dynamic", None)
    assert routes.ensure(Api(str(tmp_path)), WANTED, "ml", UID) == []
