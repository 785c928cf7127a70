"""The information on nodes that a run gets, without an API server."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import CONFIG_MAP
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.cache import transforms
from dljob_operator.engine.cache.cluster_info import ClusterInfoWatcher
from dljob_operator.engine.kube import KubeApi


class Seen:
    """A watch whose informer is fed by hand."""

    def __init__(self) -> None:
        self.watch = ClusterInfoWatcher(KubeApi.__new__(KubeApi), ("ml",), lambda: None)
        (_, self.nodes) = self.watch.informers

    def node(self, name: str, version: str = "1", **capacity: str) -> None:
        named = {f"{key}/device": count for key, count in capacity.items()}
        metadata = {"name": name, "uid": name, "resourceVersion": version}
        obj = {"metadata": metadata, "status": {"capacity": {"cpu": "1", **named}}}
        self.nodes.handle({"type": "MODIFIED", "object": obj})

    def remove(self, name: str) -> None:
        """The last event of a deleted node, whose status may be older than what is known of it."""
        gone = {"metadata": {"name": name, "uid": name, "resourceVersion": "9"}}
        self.nodes.handle({"type": "DELETED", "object": gone})

    @property
    def resources(self) -> Any:
        return self.watch.snapshot()["resources"]


def test_resources_of_all_nodes_follow_their_changes() -> None:
    seen = Seen()
    assert seen.resources == []
    seen.node("a", gpu="1")
    seen.node("b", gpu="4", rdma="1")
    assert seen.resources == ["gpu/device", "rdma/device"]
    seen.node("b", "2", gpu="0")
    assert seen.resources == ["gpu/device"]
    seen.nodes.missing_now = True
    assert seen.resources is None


def test_only_a_change_of_the_resources_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    seen = Seen()
    for version in range(1, 5):
        seen.node("a", str(version), gpu="1")
    seen.node("b", gpu="8")
    seen.node("a", "5", rdma="1")
    seen.node("b", "2")
    lines = [logs.TextFormatter().format(record) for record in caplog.records]
    assert [line.partition("resources=")[2] for line in lines] == [
        "gpu/device", '"gpu/device,rdma/device"', "rdma/device"
    ]  # fmt: skip


def test_a_removed_node_takes_its_resources_away() -> None:
    seen = Seen()
    seen.node("a", gpu="1")
    seen.node("b", gpu="1", rdma="1")
    seen.remove("b")
    assert seen.resources == ["gpu/device"]
    seen.remove("b")
    assert seen.resources == ["gpu/device"]
    seen.remove("a")
    assert seen.resources == []


def test_the_namespaces_that_are_watched() -> None:
    api = KubeApi.__new__(KubeApi)
    places = [
        [(i.source.namespace, i.source.only) for i in ClusterInfoWatcher(api, given, lambda: None).informers]
        for given in ((), ("ml",), ("ml", "default"))
    ]
    nodes = ("", "")
    assert places == [[nodes], [("ml", CONFIG_MAP), nodes], [("ml", CONFIG_MAP), ("default", CONFIG_MAP), nodes]]


def config_map(namespace: str, version: str = "1", **data: str) -> Any:
    metadata = {"name": CONFIG_MAP, "namespace": namespace, "uid": namespace, "resourceVersion": version}
    return transforms.config_map({"metadata": metadata, "data": data})


def test_a_run_gets_the_maps_of_all_namespaces_in_their_order() -> None:
    """The run takes the first, and names it by its metadata in messages."""
    watch = ClusterInfoWatcher(KubeApi.__new__(KubeApi), ("ml", "default"), lambda: None)
    for informer in watch.informers[1::-1]:
        informer.store.put(config_map(informer.source.namespace, key=f"of {informer.source.namespace}"))
    assert watch.snapshot() == {
        "config_map": CONFIG_MAP,
        "config_maps": [config_map("ml", key="of ml"), config_map("default", key="of default")],
        "resources": [],
    }


def test_nobody_waits_for_what_rbac_forbids_to_watch(caplog: pytest.LogCaptureFixture) -> None:
    class Forbids(KubeApi):
        def __init__(self) -> None:
            pass

        def list_objects(self, path: str, query: Any = None) -> Any:
            raise ApiError(403, "Forbidden", f"{path.rpartition('/')[2]} is forbidden")

    watch = ClusterInfoWatcher(Forbids(), ("ml",), lambda: None)
    for informer in watch.informers:
        informer.start()
    try:
        assert [informer.has_synced.wait(10) for informer in watch.informers] == [True, True]
    finally:
        for informer in watch.informers:
            informer.stop()
            informer.join(10)
    assert watch.snapshot() == {"config_map": CONFIG_MAP, "config_maps": [], "resources": None}
    assert {record.__dict__["dljob_fields"]["error"] for record in caplog.records} == {
        "configmaps is forbidden; accelerators that it configures in namespace ml are not set up",
        "nodes is forbidden; alpha resource names are not replaced",
    }


def test_a_changed_configuration_requeues_the_jobs_and_a_repeated_one_does_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    changes: list[str] = []
    watch = ClusterInfoWatcher(KubeApi.__new__(KubeApi), ("ml",), lambda: changes.append("changed"))
    for type_, version, data, expected in (
        ("ADDED", "1", "x", 1),
        ("MODIFIED", "2", "x", 1),
        ("MODIFIED", "3", "y", 2),
        ("DELETED", "3", "y", 3),
    ):
        watch.informers[0].handle({"type": type_, "object": config_map("ml", version, a=data)})
        assert len(changes) == expected
    where = {"namespace": "ml", "name": CONFIG_MAP}
    assert [record.__dict__["dljob_fields"] for record in caplog.records] == [
        {**where, "change": change} for change in ("created", "updated", "deleted")
    ]
