"""CONTRIBUTING.md's claim that a framework is one declaration: here a role outside of the tree, and what is generated from it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from devtools.build.generate import __main__ as generate
from devtools.testbed.operator import OperatorProcess
from kubernetes import client, config, watch
from support.live_jobs import Cluster

FOLDER = Path(__file__).parent / "new_framework"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's folder: the role, and the generated files."""
    shutil.copytree(FOLDER / "roles", tmp_path / "roles")
    assert generate.main(["--role", str(tmp_path / "roles" / "echo"), "--output", str(tmp_path)]) == 0
    return tmp_path


@pytest.fixture
def operator_of_the_new_framework(cluster: Path, images: None, namespace: str, project: Path) -> OperatorProcess:
    arguments = ("--watches-file", str(project / "watches.yaml"), "--namespace", namespace)
    return OperatorProcess(cluster, project / "operator.log", arguments)


@pytest.fixture
def echo_crd(cluster: Path, project: Path) -> None:
    api = client.ApiextensionsV1Api(config.new_client_from_config(str(cluster)))
    name = "echojobs.example.com"
    try:
        api.create_custom_resource_definition(yaml.safe_load((project / "crds" / f"{name}.yaml").read_text()))
    except client.ApiException as e:
        if e.status != 409:
            raise
    stream = watch.Watch().stream(
        api.list_custom_resource_definition, field_selector=f"metadata.name={name}", timeout_seconds=30
    )
    for event in stream:
        held = {c.type: c.status for c in event["object"].status.conditions or ()}
        if held.get("Established") == "True":
            yield
            break
    api.delete_custom_resource_definition(name)


def test_a_framework_from_outside_the_tree(
    cluster: Path, namespace: str, echo_crd: None, operator_of_the_new_framework: OperatorProcess
) -> None:
    here = Cluster(cluster, namespace)
    with operator_of_the_new_framework as process:
        process.wait_ready()
        job = here.create(yaml.safe_load((FOLDER / "hello.yaml").read_text()))
        running = job.wait_running()
        assert set(running["replicaStatuses"]) == {"Leader", "Follower"}
        assert here.wait_log("hello-leader-0", "\n", "echo").strip() == "I am 0 of 3"
        assert here.wait_log("hello-follower-1", "\n", "echo").strip() == "to hello-leader-0:7000 from 2"
        job.release("leader")
        assert job.wait_end()["state"] == "Succeeded"
