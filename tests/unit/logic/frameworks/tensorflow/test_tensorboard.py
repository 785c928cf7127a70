"""TensorBoard: the job's settings, the created objects, and their life cycle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import mark_degraded, planned
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import Conclusion
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import TENSORFLOW, UID, Resource, role_file, tfjob
from support.fake_cluster import FakeCluster
from support.upstream_manifests import from_each_source, load


def with_tensorboard(**settings: Any) -> Resource:
    resource = tfjob(master=1, worker=1)
    resource["spec"]["tensorboard"] = {"logDir": "/logs", **settings}
    return resource


def build(resource: Resource) -> tuple[Any, ...]:
    job = parse_job(resource, TENSORFLOW)
    return owned_objects.build(job, TENSORFLOW, build_cluster_spec(job, TENSORFLOW))


def made(resource: Resource) -> tuple[Any, Any]:
    deployment, service = (x for x in build(resource) if x["kind"] in ("Deployment", "Service"))
    return deployment, service


def test_deployment_and_service() -> None:
    deployment, service = made(with_tensorboard())
    assert {x["metadata"]["name"] for x in (deployment, service)} == {"tensorboard-76no"}
    assert {x["metadata"]["labels"].get("app") for x in (deployment, service)} == {"tensorboard"}
    assert all(x["metadata"]["ownerReferences"][0]["uid"] == UID for x in (deployment, service))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["name"] == "tensorboard"
    assert (container["image"], container["ports"]) == ("tensorflow/tensorflow:1.3.0", [{"containerPort": 6006}])
    program = role_file("tensorflow", "tensorboard.py")
    assert container["command"] == ["python", "-c", program, "--logdir", "/logs", "--host", "0.0.0.0"]
    assert container["readinessProbe"] == {"httpGet": {"path": "/", "port": 6006}, "timeoutSeconds": 5}
    assert deployment["spec"]["template"]["spec"]["enableServiceLinks"] is False
    assert service["spec"]["type"] == "ClusterIP"
    assert service["spec"]["ports"] == [{"name": "tb-port", "port": 80, "targetPort": 6006}]
    assert deployment["spec"]["replicas"] == 1
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert {"app": "tensorboard", "runtime_id": "76no"}.items() <= labels.items()
    assert service["spec"]["selector"].items() <= labels.items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert "dljob.operator/job-uid" not in labels, "the job's headless Service must not lead there"


def test_what_the_job_says_of_it() -> None:
    volumes, mounts = [{"name": "v", "emptyDir": {}}], [{"name": "v", "mountPath": "/logs"}]
    resource = with_tensorboard(volumes=volumes, volumeMounts=mounts, serviceType="NodePort")
    resource["spec"]["tfImage"] = "mine:2"
    deployment, service = made(resource)
    pod = deployment["spec"]["template"]["spec"]
    assert (pod["volumes"], pod["containers"][0]["volumeMounts"]) == (volumes, mounts)
    assert pod["containers"][0]["image"] == "mine:2"
    assert service["spec"]["type"] == "NodePort"


def test_as_the_original_operator_prints_it() -> None:
    deployment, service = made(with_tensorboard(serviceType="", volumes=None, volumeMounts=None))
    assert deployment["spec"]["template"]["spec"]["volumes"] == []
    assert service["spec"]["type"] == "ClusterIP"


def test_braces_in_a_directory_are_no_placeholders() -> None:
    deployment, _ = made(with_tensorboard(logDir="{job}/{nothing}"))
    assert deployment["spec"]["template"]["spec"]["containers"][0]["command"][4] == "{job}/{nothing}"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("x", "must be a map"),
        ({}, "logDir is missing"),
        ({"logDir": ""}, "logDir is missing"),
        ({"logDir": "/l", "volumes": "x"}, "volumes must be a list"),
        ({"logDir": "/l", "volumeMounts": ["x"]}, "volumeMounts must be a list"),
        ({"logDir": "/l", "serviceType": "ExternalName"}, "serviceType"),
    ],
)
def test_invalid_tensorboards(page: Any, said: str) -> None:
    resource = tfjob(master=1)
    resource["spec"]["tensorboard"] = page
    with pytest.raises(InvalidJob, match=said):
        parse_job(resource, TENSORFLOW)


def test_a_job_without_one() -> None:
    assert build(tfjob(master=1)) == ()


def test_it_is_made_once_and_outlives_the_training() -> None:
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    assert [x["kind"] for x in fake_cluster.planned().auxiliary_objects] == ["Deployment", "Service"]
    fake_cluster.start()
    assert fake_cluster.planned().auxiliary_objects == ()
    fake_cluster.exit("master", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")
    assert list(fake_cluster.services) == ["tensorboard-76no"]


# --- the TensorBoard follows the job


def tensorboard_of(fake_cluster: FakeCluster) -> tuple[Resource, Resource]:
    (deployment,) = fake_cluster.others["Deployment"].values()
    service = fake_cluster.services[deployment["metadata"]["name"]]
    return deployment, service


@pytest.mark.parametrize("finished", [False, True])
def test_an_edit_takes_effect_in_place(finished: bool) -> None:
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    fake_cluster.start()
    if finished:
        fake_cluster.exit("master", 0, 0)
        fake_cluster.settle()
    uids = [x["metadata"]["uid"] for x in tensorboard_of(fake_cluster)]
    pods = set(fake_cluster.pods)
    fake_cluster.edit(lambda spec: spec["tensorboard"].update(logDir="/other", serviceType="NodePort"))
    fake_cluster.settle()
    deployment, service = tensorboard_of(fake_cluster)
    assert "/other" in deployment["spec"]["template"]["spec"]["containers"][0]["command"]
    assert service["spec"]["type"] == "NodePort"
    assert [deployment["metadata"]["uid"], service["metadata"]["uid"]] == uids
    assert set(fake_cluster.pods) == pods, "the training is left alone"


@pytest.mark.parametrize("finished", [False, True])
def test_asked_for_later_and_no_longer(finished: bool) -> None:
    fake_cluster = FakeCluster(tfjob(master=1, worker=1), TENSORFLOW)
    fake_cluster.start()
    if finished:
        fake_cluster.exit("master", 0, 0)
        fake_cluster.settle()
    before = set(fake_cluster.services)
    fake_cluster.edit(lambda spec: spec.update(tensorboard={"logDir": "/logs"}))
    fake_cluster.settle()
    assert set(fake_cluster.services) == before | {"tensorboard-76no"}
    assert list(fake_cluster.others["Deployment"]) == ["tensorboard-76no"]
    fake_cluster.edit(lambda spec: spec.pop("tensorboard"))
    fake_cluster.settle()
    assert set(fake_cluster.services) == before
    assert not fake_cluster.others["Deployment"]


@pytest.mark.parametrize("kind", ["Deployment", "Service"])
@pytest.mark.parametrize("finished", [False, True])
def test_deleted_objects_are_created_again(kind: str, finished: bool) -> None:
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    fake_cluster.start()
    if finished:
        fake_cluster.exit("master", 0, 0)
        fake_cluster.settle()
    held = fake_cluster.services if kind == "Service" else fake_cluster.others[kind]
    del held["tensorboard-76no"]
    fake_cluster.settle()
    assert "tensorboard-76no" in held


def test_a_tensorboard_of_another_name_is_deleted() -> None:
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    fake_cluster.start()
    fake_cluster.edit(lambda spec: spec.update(RuntimeId="abcd"))
    fake_cluster.settle()
    assert list(fake_cluster.others["Deployment"]) == ["tensorboard-abcd"]
    assert "tensorboard-76no" not in fake_cluster.services


def test_a_tensorboard_of_an_earlier_release_is_replaced() -> None:
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    fake_cluster.start()
    for made in tensorboard_of(fake_cluster):
        del made["metadata"]["annotations"]["dljob.operator/lifetime"]
        made["metadata"]["annotations"]["dljob.operator/spec-hash"] = "0123456789abcdef"
    assert [x["kind"] for x in fake_cluster.planned().ensured_objects] == ["Deployment", "Service"]
    fake_cluster.edit(lambda spec: spec.pop("tensorboard"))
    fake_cluster.settle()
    assert "tensorboard-76no" not in fake_cluster.services


def test_at_the_start_it_comes_before_the_pods_and_later_beside_them() -> None:
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    first = fake_cluster.planned()
    assert ([x["kind"] for x in first.auxiliary_objects], first.ensured_objects) == (["Deployment", "Service"], ())
    fake_cluster.start()
    fake_cluster.others["Deployment"].clear()
    later = fake_cluster.planned()
    assert (later.auxiliary_objects, [x["kind"] for x in later.ensured_objects]) == ((), ["Deployment"])


def test_a_tensorboard_that_kubernetes_refuses_later_is_reported_once() -> None:
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    fake_cluster.start()
    fake_cluster.edit(lambda spec: spec["tensorboard"].update(volumes=[{"name": "Bad"}]))
    fake_cluster.settle()
    job = parse_job(fake_cluster.resource, TENSORFLOW)
    degraded = mark_degraded(Conclusion(None), job, ["Deployment/x: no such volume"])
    assert degraded.status and (degraded.status["state"], degraded.status["reason"]) == (
        "Running",
        "Deployment/x: no such volume",
    )
    assert [e.reason for e in degraded.events] == ["FailedPage"]
    fake_cluster.resource["status"] = degraded.status
    again = mark_degraded(
        planned(fake_cluster.planned()), parse_job(fake_cluster.resource, TENSORFLOW), ["Deployment/x: no such volume"]
    )
    assert (again.status, again.events) == (None, ())
    fake_cluster.settle()
    assert fake_cluster.status["reason"] == "", "once it is as it should be"


def test_the_reason_of_a_refusal_after_the_success_goes_too() -> None:
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    fake_cluster.start()
    fake_cluster.exit("master", 0, 0)
    fake_cluster.settle()
    degraded = mark_degraded(Conclusion(None), parse_job(fake_cluster.resource, TENSORFLOW), ["Deployment/x: no"])
    fake_cluster.resource["status"] = degraded.status
    assert fake_cluster.status["reason"] == "Deployment/x: no"
    fake_cluster.settle()
    assert fake_cluster.status["reason"] == ""


def test_a_failed_job_keeps_its_reason() -> None:
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    fake_cluster.start()
    fake_cluster.exit("master", 0, 1)
    fake_cluster.settle()
    job = parse_job(fake_cluster.resource, TENSORFLOW)
    assert mark_degraded(Conclusion(None), job, ["x"]) == Conclusion(None)


def test_the_route() -> None:
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    (made,) = fake_cluster.planned().routes
    assert made["metadata"]["ownerReferences"][0]["uid"] == UID
    service = fake_cluster.planned().auxiliary_objects[-1]
    assert made["spec"]["to"] == {"kind": "Service", "name": service["metadata"]["name"]}
    assert made["spec"]["port"]["targetPort"] == service["spec"]["ports"][0]["name"]
    assert made["spec"]["tls"] == {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"}
    assert FakeCluster(tfjob(master=1), TENSORFLOW).planned().routes == ()


@pytest.mark.parametrize("finished", [False, True])
def test_the_route_follows_the_job(finished: bool) -> None:
    """No engine watches Routes, so each reconcile ensures the Route or deletes that of a former TensorBoard."""
    fake_cluster = FakeCluster(with_tensorboard(), TENSORFLOW)
    fake_cluster.start()
    if finished:
        fake_cluster.exit("master", 0, 0)
        fake_cluster.settle()
    with_one = fake_cluster.planned()
    assert ([x["metadata"]["name"] for x in with_one.routes], with_one.stale_routes) == (["tensorboard-76no"], ())
    fake_cluster.edit(lambda spec: spec.pop("tensorboard"))
    without = fake_cluster.planned()
    assert (without.routes, without.stale_routes) == ((), ("tensorboard-76no",))


def test_the_config_map_of_the_servers_comes_back() -> None:
    fake_cluster = FakeCluster(tfjob(master=1, ps=1), TENSORFLOW)
    fake_cluster.start()
    fake_cluster.others["ConfigMap"].clear()
    pods = set(fake_cluster.pods)
    fake_cluster.settle()
    assert list(fake_cluster.others["ConfigMap"]) == ["cm-ps-76no"]
    assert set(fake_cluster.pods) == pods


@pytest.mark.parametrize("path", from_each_source("tf-tensorboard-azure.yaml", "tf-tensorboard-gke.yaml"))
def test_upstream_manifests(path: Path) -> None:
    resource = load(path)
    resource["metadata"] |= {"namespace": "default", "uid": UID, "generation": 1}
    asked = resource["spec"]["tensorboard"]
    deployment, _ = made(resource)
    pod = deployment["spec"]["template"]["spec"]
    assert pod["containers"][0]["command"][4] == asked["logDir"]
    assert pod["volumes"] == asked.get("volumes", [])
