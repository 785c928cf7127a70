"""TensorBoard: what a job asks for, what is made of it, and how long it stays."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.dashboard import build, names
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from builders import ECHO_DECLARATION, TENSORFLOW, UID, Resource, echo_framework, echojob, role_file, tfjob
from seeds import seed_manifest
from world import World


def with_page(**page: Any) -> Resource:
    resource = tfjob(master=1, worker=1)
    resource["spec"]["tensorboard"] = {"logDir": "/logs", **page}
    return resource


def made(resource: Resource) -> tuple[Any, Any]:
    deployment, service = build(parse_job(resource, TENSORFLOW), TENSORFLOW)
    return deployment, service


def test_deployment_and_service() -> None:
    deployment, service = made(with_page())
    assert {x["metadata"]["name"] for x in (deployment, service)} == {"tensorboard-76no"}
    assert all(x["metadata"]["ownerReferences"][0]["uid"] == UID for x in (deployment, service))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "tensorflow/tensorflow:1.3.0"
    program = role_file("tensorflow", "tensorboard.py")
    assert container["command"] == ["python", "-c", program, "--logdir", "/logs", "--host", "0.0.0.0"]
    assert service["spec"]["type"] == "ClusterIP"
    assert service["spec"]["ports"] == [{"name": "tb-port", "port": 80, "targetPort": 6006}]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert "dljob.operator/job-uid" not in labels, "the job's headless Service must not lead there"


def test_what_the_job_says_of_it() -> None:
    volumes, mounts = [{"name": "v", "emptyDir": {}}], [{"name": "v", "mountPath": "/logs"}]
    resource = with_page(volumes=volumes, volumeMounts=mounts, serviceType="NodePort")
    resource["spec"]["tfImage"] = "mine:2"
    deployment, service = made(resource)
    pod = deployment["spec"]["template"]["spec"]
    assert (pod["volumes"], pod["containers"][0]["volumeMounts"]) == (volumes, mounts)
    assert pod["containers"][0]["image"] == "mine:2"
    assert service["spec"]["type"] == "NodePort"


def test_as_the_original_operator_prints_it() -> None:
    deployment, service = made(with_page(serviceType="", volumes=None, volumeMounts=None))
    assert deployment["spec"]["template"]["spec"]["volumes"] == []
    assert service["spec"]["type"] == "ClusterIP"


def test_braces_in_a_directory_are_no_placeholders() -> None:
    deployment, _ = made(with_page(logDir="{job}/{nothing}"))
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
def test_bad_ones(page: Any, said: str) -> None:
    resource = tfjob(master=1)
    resource["spec"]["tensorboard"] = page
    with pytest.raises(InvalidJob, match=said):
        parse_job(resource, TENSORFLOW)


def test_a_job_without_one_and_a_framework_without_one() -> None:
    assert build(parse_job(tfjob(master=1), TENSORFLOW), TENSORFLOW) == ()
    echo = echo_framework()
    job = parse_job(echojob(tensorboard={"logDir": "/x"}), echo)
    assert (names(job, echo), build(job, echo)) == ((), ())
    assert "dashboard" not in ECHO_DECLARATION


def test_it_is_made_once_and_outlives_the_training() -> None:
    world = World(with_page(), TENSORFLOW)
    assert [x["kind"] for x in world.planned().companions] == ["Deployment", "Service"]
    world.start()
    assert world.planned().companions == ()
    world.exit("master", 0, 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")
    assert list(world.services) == ["tensorboard-76no"]


@pytest.mark.parametrize("name", ["tf-tensorboard-azure.yaml", "tf-tensorboard-gke.yaml"])
def test_seeds(name: str) -> None:
    resource = seed_manifest(name)
    resource["metadata"] |= {"namespace": "default", "uid": UID, "generation": 1}
    asked = resource["spec"]["tensorboard"]
    deployment, _ = made(resource)
    pod = deployment["spec"]["template"]["spec"]
    assert pod["containers"][0]["command"][4] == asked["logDir"]
    assert pod["volumes"] == asked.get("volumes", [])
