"""ClusterInfoWatcher against a real API server: the operator's ConfigMap and the resources of nodes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import CONFIG_MAP
from integration.engine.support import WORKER, Engine, Jobs, until
from support.operator_log import unescaped

from dljob_operator.engine.cache.cluster_info import ClusterInfoWatcher
from dljob_operator.engine.discovery import CONFIG_MAPS, NODES
from dljob_operator.engine.kube import KubeApi

DEVICE = f"dljob.test/device-{WORKER}"


class Changes:
    """Counts the calls that a change of the ConfigMap makes."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


@pytest.fixture
def started() -> Iterator[list[ClusterInfoWatcher]]:
    """Watches put here are stopped after the test."""
    watches: list[ClusterInfoWatcher] = []
    yield watches
    informers = [informer for watch in watches for informer in watch.informers]
    for informer in informers:
        informer.stop()
    for informer in informers:
        informer.join(5)


def start(api: KubeApi, namespace: str, started: list[ClusterInfoWatcher]) -> tuple[ClusterInfoWatcher, Changes]:
    changes = Changes()
    watch = ClusterInfoWatcher(api, (namespace,), changes)
    started.append(watch)
    for informer in watch.informers:
        informer.start()
    for informer in watch.informers:
        assert informer.has_synced.wait(30), informer.what
    return watch, changes


def write_config_map(kube: KubeApi, namespace: str, name: str = CONFIG_MAP, **data: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
    path = f"{CONFIG_MAPS.item(namespace, name)}?fieldManager=test&force=true"
    kube.request("PATCH", path, body, content_type="application/apply-patch+yaml")


@pytest.fixture
def node(kube: KubeApi) -> str:
    return str(kube.get(NODES.collection())["items"][0]["metadata"]["name"])


def patch_node(kube: KubeApi, name: str, status: dict[str, Any]) -> None:
    path = f"{NODES.item('', name)}/status"
    kube.request("PATCH", path, {"status": status}, content_type="application/strategic-merge-patch+json")


@pytest.fixture
def device(kube: KubeApi, node: str) -> Iterator[str]:
    """A device on the node, with a name that no other test uses."""
    patch_node(kube, node, {"capacity": {DEVICE: "2"}})
    yield DEVICE
    patch_node(kube, node, {"capacity": {DEVICE: None}, "allocatable": {DEVICE: None}})


def test_the_map_of_the_own_namespace_comes_first_and_no_other_is_seen(
    kube: KubeApi, namespace: str, started: list[ClusterInfoWatcher]
) -> None:
    write_config_map(kube, namespace, "another", a="b")
    watch, changes = start(kube, namespace, started)

    def own() -> list[dict[str, Any]]:
        found = watch.snapshot()["config_maps"]
        assert all(one["metadata"]["name"] == CONFIG_MAP for one in found)
        return [one for one in found if one["metadata"]["namespace"] == namespace]

    assert own() == []
    before = changes.count
    write_config_map(kube, namespace, a="b")
    assert until(own, "the new map is seen")[0]["data"] == {"a": "b"}
    assert watch.snapshot()["config_maps"][0]["metadata"]["namespace"] == namespace
    until(lambda: changes.count == before + 1, "the change is reported")
    path = CONFIG_MAPS.item(namespace, CONFIG_MAP)
    kube.request("PATCH", path, {"metadata": {"labels": {"x": "y"}}}, content_type="application/merge-patch+json")
    kube.request("DELETE", path)
    until(lambda: not own(), "its deletion is seen")
    until(lambda: changes.count == before + 2, "the deletion is reported, the label change is not")


def test_what_the_nodes_have(
    kube: KubeApi, namespace: str, node: str, device: str, started: list[ClusterInfoWatcher]
) -> None:
    watch, _ = start(kube, namespace, started)
    until(lambda: device in watch.snapshot()["resources"], "the device is seen")
    assert "cpu" not in watch.snapshot()["resources"]
    patch_node(kube, node, {"capacity": {DEVICE: "0"}, "allocatable": {DEVICE: "0"}})
    until(lambda: device not in watch.snapshot()["resources"], "its end is seen")
    patch_node(kube, node, {"capacity": {DEVICE: "1"}})
    until(lambda: device in watch.snapshot()["resources"], "and its return")


def test_the_operator_does_without_what_it_may_not_see(
    kube: KubeApi,
    kubeconfig: Path,
    namespace: str,
    tmp_path: Path,
    started: list[ClusterInfoWatcher],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "dljob_operator")
    write_config_map(kube, namespace, a="b")
    watch, _ = start(restricted(kube, kubeconfig, namespace, tmp_path), namespace, started)
    assert watch.snapshot() == {"config_map": CONFIG_MAP, "config_maps": [], "resources": None}
    said = unescaped(caplog.text).splitlines()
    assert any('cannot list resource "nodes"' in line and "alpha resource names" in line for line in said), said
    assert any('cannot list resource "configmaps"' in line and namespace in line for line in said), said

    # as little as the operator can do with: one ConfigMap by its name
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [CONFIG_MAP], "verbs": ["list", "watch"]}
    kube.request("POST", f"{rbac}/roles", {"metadata": {"name": "operator"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "operator"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": namespace}],
    }
    kube.request("POST", f"{rbac}/rolebindings", binding)
    until(lambda: watch.snapshot()["config_maps"], "what it may see now is seen")
    assert watch.snapshot()["resources"] is None
    said = unescaped(caplog.text).splitlines()
    assert len([line for line in said if 'cannot list resource "nodes"' in line]) == 1, "said at every try"


def restricted(kube: KubeApi, kubeconfig: Path, namespace: str, tmp_path: Path) -> KubeApi:
    """The API as an account without any rights sees it."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    kube.request("POST", accounts, {"metadata": {"name": "operator"}})
    token = kube.request("POST", f"{accounts}/operator/token", {"spec": {}})["status"]["token"]
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path = tmp_path / "restricted"
    path.write_text(yaml.safe_dump(config))
    return KubeApi.connect(path)


def test_a_changed_map_is_a_reason_to_run_every_job_that_is_not_over(
    kube: KubeApi, engine: Engine, jobs: Jobs, device: str, node: str
) -> None:
    engine.start({"max_concurrent": 1, "config_namespaces": (jobs.namespace,)})
    over = jobs.create("over")
    jobs.create("waits")
    engine.wait_run("over", 1)
    engine.wait_run("waits", 1)
    jobs.write_status("over", completionTime="2026-01-01T00:00:00Z")
    kept = engine.controller.informers.kind(str(engine.watch.gvk))
    assert kept is not None
    until(lambda: (kept.get(over["metadata"]["uid"]) or {}).get("status"), "the engine has seen that it is over")
    # a node's heartbeat and its devices are none
    patch_node(kube, node, {"capacity": {DEVICE: "3"}})
    marker = jobs.create("marker")
    engine.wait_run("marker", 1)
    # a new job is urgent; the event of a pod waits for others, as a change of a node would
    jobs.create_pod("marker-0", marker)
    until(lambda: engine.runs("marker")[-1]["pods"], "a later pod's event is dealt with")
    assert len(engine.runs("waits")) == 1
    write_config_map(kube, jobs.namespace, a="b")
    engine.wait_run("waits", 2)
    jobs.create("later")
    engine.wait_run("later", 1)
    assert (len(engine.runs("over")), len(engine.runs("waits"))) == (1, 2)
