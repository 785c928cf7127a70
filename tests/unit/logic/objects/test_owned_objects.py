"""The objects hook: what a framework's job owns besides its pods, from creation to cleanup."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.owned_objects import (
    Key,
    build,
    is_from_hook,
    with_rights,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import OwnedObject
from support.builders import ECHO_DECLARATION, MPI, UID, echo_framework, echojob, mpijob, mpijob_v1
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
    return loader.framework(declaration, {"objects": hook})


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


def test_content_with_its_keys_in_another_order_is_the_same() -> None:
    cluster = FakeCluster(echojob(1), framework_with(lambda found: [hosts(found, data={"a": "1", "b": "2"})]))
    cluster.start()
    cluster.framework = framework_with(lambda found: [hosts(found, data={"b": "2", "a": "1"})])
    assert cluster.planned().ensured_objects == ()


def test_new_pods_wait_only_for_the_objects_that_end_with_them() -> None:
    cluster = FakeCluster(
        echojob(2),
        framework_with(lambda found: [hosts(found), autoscaler(found)], owns=["ConfigMap", "HorizontalPodAutoscaler"]),
    )
    both = ["ConfigMap", "HorizontalPodAutoscaler"]
    assert kinds(cluster.planned().auxiliary_objects) == both, "before the first pods, so that errors show at once"
    cluster.start()
    for kind in both:
        cluster.others[kind].clear()
    del cluster.pods["hello-follower-1"]
    planned = cluster.planned()
    assert [pod["metadata"]["name"] for pod in planned.pods] == ["hello-follower-1"]
    assert kinds(planned.auxiliary_objects) == ["ConfigMap"]
    assert kinds(planned.ensured_objects) == ["HorizontalPodAutoscaler"]


def test_a_kind_without_updates_is_left_as_it_is() -> None:
    def secret(text: str) -> Any:
        metadata = {"name": "hello-key"}
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": text}}
        return framework_with(lambda found: [made], owns=["Secret"])

    cluster = FakeCluster(echojob(1), secret("a"))
    cluster.start()
    cluster.framework = secret("b")
    assert cluster.planned().ensured_objects == ()


def test_the_rights_of_a_launcher_are_written_before_its_hosts_and_with_nothing_else() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "hello"}, "rules": []}
    framework = framework_with(lambda cluster: [hosts(cluster), role], owns=["ConfigMap", "Role"])
    job = parse_job(echojob(1), framework)
    made = build(job, framework, build_cluster_spec(job, framework))
    shared = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hello-environment"}}

    def names(*unsettled: Any) -> list[str]:
        return [one["metadata"]["name"] for one in with_rights(made, unsettled)]

    assert names(made[0], shared) == ["hello-environment", "hello", "hello-hosts"]
    assert names(shared) == ["hello-environment"]


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


@pytest.mark.parametrize(
    ("key", "found", "expected"),
    [
        (("ConfigMap", "x"), OwnedObject("1", "4f", "pods"), True),
        (("ConfigMap", "Deployment"), OwnedObject("1", "4f"), False),
        (("ConfigMap", "Service"), OwnedObject("1", "4f"), False),
        (("Deployment", "x"), OwnedObject("1"), True),
        (("Service", "x"), OwnedObject("1", "4f"), True),
        (("Service", "x"), OwnedObject("1"), False),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_which_objects_without_a_lifetime_are_of_a_hook(key: Key, found: OwnedObject, expected: bool) -> None:
    """Those of releases that wrote none. The others are the reconcile's own, and are in use."""
    assert is_from_hook(key, found) is expected


def test_a_framework_without_the_hook_has_none() -> None:
    job = parse_job(echojob(1), echo_framework())
    assert build(job, echo_framework(), build_cluster_spec(job, echo_framework())) == ()


def test_a_date_that_yaml_makes_of_a_text_has_a_hash_too() -> None:
    framework = framework_with(lambda cluster: [hosts(cluster, data={"since": datetime.date(2026, 1, 2)})])
    job = parse_job(echojob(1), framework)
    (made,) = build(job, framework, build_cluster_spec(job, framework))
    assert len(made["metadata"]["annotations"]["dljob.operator/spec-hash"]) == 16


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
        (
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "immutable": True},
            "returned the kind 'Secret'",
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


@pytest.mark.parametrize("resource", [mpijob(), mpijob_v1()], ids=["v2beta1", "v1"])
def test_all_objects_of_a_job_have_its_labels(resource: dict[str, Any]) -> None:
    """By which users delete what a job leaves. Those of a replica are not among them."""
    job = parse_job(resource, MPI)
    found = build(job, MPI, build_cluster_spec(job, MPI))
    assert found
    for manifest in found:
        labels = manifest["metadata"]["labels"]
        assert labels["training.kubeflow.org/job-name"] == "pi"
        assert labels["app"] == "pi", "as in mpi-operator"
        assert not [name for name in labels if "replica" in name or "role" in name]
