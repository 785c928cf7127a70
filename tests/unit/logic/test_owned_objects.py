"""The objects hook: what a framework's job owns besides its pods, from creation to cleanup."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic import framework_loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.owned_objects import build
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from support.builders import ECHO_DECLARATION, UID, echojob
from support.fake_cluster import FakeCluster

LIFETIME = "dljob.operator/lifetime"
GENERATE = "dljob.operator/generate"


def hosts(cluster: Any, **more: Any) -> dict[str, Any]:
    """A ConfigMap with the names of all replicas."""
    names = [m["host"] for members in cluster["replicas"].values() for m in members]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{cluster['job']['name']}-hosts", "labels": {"app": "echo"}},
        "data": {"hosts": " ".join(names)},
        **more,
    }


def autoscaler(cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": cluster["job"]["name"], "annotations": {LIFETIME: "job"}},
        "spec": {"maxReplicas": cluster["spec"].get("color", 1)},
    }


def framework_with(hook: Any, **declared: Any) -> Any:
    flavor = {
        **ECHO_DECLARATION["flavors"][0],
        "fields": {"color": {"x-dljob-affects": "objects"}},
        "default_clean_pod_policy": "Running",
    }
    declaration = {
        **ECHO_DECLARATION,
        "owns": ["ConfigMap"],
        "hooks": {"objects": "a.b.c"},
        "flavors": [flavor],
        **declared,
    }
    return framework_loader.framework(declaration, {"objects": hook})


def kinds(manifests: Any) -> list[str]:
    return [manifest["kind"] for manifest in manifests]


def test_owner_labels_hash_and_lifetime_are_added() -> None:
    framework = framework_with(lambda cluster: [hosts(cluster)])
    job = parse_job(echojob(1), framework)
    (made,) = build(job, framework, build_cluster_spec(job, framework))
    metadata = made["metadata"]
    assert (metadata["namespace"], metadata["ownerReferences"][0]["uid"]) == ("default", UID)
    assert metadata["labels"] == {
        "app": "echo",
        "app.kubernetes.io/managed-by": "dljob-operator",
        "dljob.operator/job-uid": UID,
    }
    assert metadata["annotations"][LIFETIME] == "pods"
    assert len(metadata["annotations"]["dljob.operator/spec-hash"]) == 16
    assert made["data"] == {"hosts": "hello-leader-0 hello-follower-0"}


def test_needed_by_the_pods_and_gone_with_them() -> None:
    cluster = FakeCluster(echojob(1), framework_with(lambda found: [hosts(found)]))
    assert kinds(cluster.planned().auxiliary_objects) == ["ConfigMap"], "before the pods"
    assert cluster.planned().ensured_objects == (), "once"
    cluster.start()
    assert (cluster.planned().auxiliary_objects, cluster.planned().ensured_objects) == ((), ())
    cluster.others["ConfigMap"].clear()
    assert kinds(cluster.planned().ensured_objects) == ["ConfigMap"], "and again where somebody deletes it"
    cluster.settle()
    cluster.exit("leader", 0, 0)
    cluster.settle()
    assert cluster.outcome == ("Done", "Succeeded")
    assert not cluster.others["ConfigMap"]


@pytest.mark.parametrize(("more", "replaced"), [({}, ["ConfigMap"]), ({"immutable": True}, [])])
def test_other_content_is_replaced_unless_it_is_immutable(more: dict[str, Any], replaced: list[str]) -> None:
    cluster = FakeCluster(echojob(1), framework_with(lambda found: [hosts(found, **more)]))
    cluster.start()
    cluster.framework = framework_with(lambda found: [hosts(found, **more, data={"hosts": "other"})])
    assert kinds(cluster.planned().ensured_objects) == replaced


def test_a_kind_without_updates_is_left_as_it_is() -> None:
    def secret(text: str) -> Any:
        metadata = {"name": "hello-key"}
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": text}}
        return framework_with(lambda found: [made], owns=["Secret"])

    cluster = FakeCluster(echojob(1), secret("a"))
    cluster.start()
    cluster.framework = secret("b")
    assert cluster.planned().ensured_objects == ()


def test_one_that_outlives_the_training() -> None:
    cluster = FakeCluster(
        echojob(1), framework_with(lambda found: [autoscaler(found)], owns=["HorizontalPodAutoscaler"])
    )
    cluster.start()
    cluster.exit("leader", 0, 0)
    cluster.settle()
    assert list(cluster.others["HorizontalPodAutoscaler"]) == ["hello"]
    cluster.edit(lambda spec: spec.update(color=3))
    cluster.settle()
    assert cluster.others["HorizontalPodAutoscaler"]["hello"]["spec"] == {"maxReplicas": 3}


def test_one_that_the_hook_no_longer_returns_is_deleted() -> None:
    cluster = FakeCluster(
        echojob(1, color=2),
        framework_with(lambda found: [hosts(found)] if found["spec"].get("color") else []),
    )
    cluster.start()
    pods = set(cluster.pods)
    cluster.edit(lambda spec: spec.pop("color"))
    assert cluster.planned().stale_routes == (), "only a Service has a Route"
    cluster.settle()
    assert not cluster.others["ConfigMap"]
    assert set(cluster.pods) == pods, "such a field restarts no pod"


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (
            {"apiVersion": "v1", "kind": "Secret"},
            "returned the kind 'Secret': declare it in owns, which has ConfigMap",
        ),
        ({"apiVersion": "v1", "kind": "Pod"}, "returned the kind 'Pod'"),
        ({"apiVersion": "v2", "kind": "ConfigMap"}, "the apiVersion of ConfigMap is v1"),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {LIFETIME: "day"}}},
            "lifetime of ConfigMap must be pods or job",
        ),
        (
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "x", "annotations": {GENERATE: "ssh-key-pair"}},
            },
            "dljob.operator/generate must be ssh-key-pair, on a Secret, not 'ssh-key-pair' on ConfigMap",
        ),
    ],
)
def test_mistakes_of_a_hook(manifest: dict[str, Any], said: str) -> None:
    framework = framework_with(lambda cluster: [manifest])
    job = parse_job(echojob(1), framework)
    with pytest.raises(InvalidFramework, match=said):
        build(job, framework, build_cluster_spec(job, framework))
