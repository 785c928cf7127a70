"""That the OpenShift client, which writes Routes, asks the API server directly where the REST client does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.api import routes
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import connect
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan
from support.builders import UID
from support.scripted_server import Exchange, ScriptedServer, scripted

VERSION = {"groupVersion": "route.openshift.io/v1", "version": "v1"}
ANSWERS: dict[str, Any] = {
    "/version": {"major": "1", "minor": "34"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [{"name": "route.openshift.io", "versions": [VERSION], "preferredVersion": VERSION}],
    },
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
    "/apis/route.openshift.io/v1": {
        "kind": "APIResourceList",
        "groupVersion": "route.openshift.io/v1",
        "resources": [{"name": "routes", "kind": "Route", "namespaced": True, "verbs": ["create", "get"]}],
    },
}
ROUTE = {
    "apiVersion": "route.openshift.io/v1",
    "kind": "Route",
    "metadata": {"name": "board"},
    "spec": {"to": {"kind": "Service", "name": "board"}},
}


def _answer(exchange: Exchange) -> None:
    if exchange.method == "POST":
        exchange.answer(exchange.body, 201)
    elif exchange.path in ANSWERS:
        exchange.answer(ANSWERS[exchange.path])
    else:
        exchange.answer({"kind": "Status", "code": 404, "message": "none"}, 404)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted(_answer) as listening:
        yield listening


@pytest.fixture
def proxy() -> Iterator[ScriptedServer]:
    with scripted(lambda exchange: exchange.answer({}, 502)) as listening:
        yield listening


def test_a_route_on_loopback_is_written_directly(
    server: ScriptedServer, proxy: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, proxy.url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "kubeconfig"
    content = {
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    with connect(str(path)) as api:
        assert routes.ensure(api, Plan(routes=(ROUTE,)), "ml", UID) == []
    assert [one.body["metadata"]["name"] for one in server.requests if one.method == "POST"] == ["board"]
    assert proxy.requests == []
