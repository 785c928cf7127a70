"""The kinds are those of crds/, and their small jobs those that the roles declare."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from devtools.definitions import CRDS
from devtools.testbed.jobs import ROLES, JobKind, kind_of, read_kinds, stored

KINDS = read_kinds()


def test_each_object_is_in_one_stored_version() -> None:
    found = stored(KINDS)
    assert len({(kind.group, kind.kind) for kind in found}) == len(found) == len(list(CRDS.glob("*.yaml")))


@pytest.mark.parametrize(
    ("api_version", "kind", "types", "success"),
    [
        ("kubeflow.org/v1", "MXJob", "Scheduler 1, Server 1, Worker 1", "Scheduler"),
        ("kubeflow.org/v1alpha1", "MXJob", "SCHEDULER 1, SERVER 1, WORKER 1", "SCHEDULER"),
        ("mpba.fbk.eu/v1", "MXJob", "SCHEDULER 1, SERVER 1, WORKER 1", "SCHEDULER"),
        ("kubeflow.org/v1", "TFJob", "Chief 1, Worker 1", "Chief"),
        ("kubeflow.org/v1alpha1", "TFJob", "MASTER 1, WORKER 1", "MASTER"),
        ("tensorflow.org/v1alpha1", "TfJob", "MASTER 1", "MASTER"),
        ("kubeflow.org/v1", "PyTorchJob", "Master 1, Worker 1", "Master"),
        ("kubeflow.org/v1", "PaddleJob", "Worker 2", "Worker"),
        ("kubeflow.org/v1", "JAXJob", "Worker 2", "Worker"),
        ("kubeflow.org/v1", "MPIJob", "Launcher 1, Worker 1", "Launcher"),
        ("kubeflow.org/v1alpha1", "Caffe2Job", "Worker 1", "Worker"),
        ("dljob.operator/v1", "DLJob", "Worker 2", "Worker"),
    ],
)
def test_the_types_of_a_small_job(api_version: str, kind: str, types: str, success: str) -> None:
    """Others would change what the seeds of `fuzz` and `soak` give."""
    found = kind_of(api_version, kind)
    assert (", ".join(f"{name} {count}" for name, count in found.types), found.success) == (types, success)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_a_small_job_has_the_pods_of_its_kind(kind: JobKind) -> None:
    spec = kind.small_job("x")["spec"]
    replicas = spec[kind.field] if kind.field else spec
    listed = replicas if isinstance(replicas, list) else list(replicas.values())
    entries = [replicas] if kind.single else listed
    assert sum(entry[kind.count_field] for entry in entries) == kind.pods <= 3
    assert kind.field == "" or kind.field in kind.schema["properties"]["spec"]["properties"]
    names = {c["name"] for entry in entries for c in entry["template"]["spec"]["containers"]}
    assert names == {kind.container}


def test_templates_are_separate_objects() -> None:
    replicas = kind_of("kubeflow.org/v1", "MXJob").small_job("x")["spec"]["mxReplicaSpecs"]
    assert replicas["Worker"]["template"] is not replicas["Server"]["template"]


def test_a_run_policy_has_no_place_in_a_list() -> None:
    policy = {"suspend": True}
    assert isinstance(kind_of("mpba.fbk.eu/v1", "MXJob").small_job("x", run_policy=policy)["spec"], list)
    assert kind_of("kubeflow.org/v1", "TFJob").small_job("x", run_policy=policy)["spec"]["runPolicy"] == policy


def test_a_kind_that_a_role_declares_needs_nothing_here(tmp_path: Path) -> None:
    """The framework of CONTRIBUTING.md, with a definition such as `make generate` writes."""
    for role in ROLES.glob("*/vars/main.yml"):
        (tmp_path / "roles" / role.parents[1].name / "vars").mkdir(parents=True)
        (tmp_path / "roles" / role.relative_to(ROLES)).symlink_to(role)
    declared = {
        "extends": "kubeflow_v1", "kinds": [{"group": "example.com", "kind": "EchoJob", "versions": ["v1"]}],
        "container": "echo", "replica_types": {"Leader": {"minimum": 1, "maximum": 1}, "Follower": None},
        "success_target": ["Leader"], "replicas_fields": ["replicaSpecs"],
    }  # fmt: skip
    (tmp_path / "roles" / "echo" / "vars").mkdir(parents=True)
    (tmp_path / "roles" / "echo" / "vars" / "main.yml").write_text(
        yaml.safe_dump({"echo_framework": declared}, sort_keys=False)
    )
    properties = {"spec": {"properties": {"replicaSpecs": {"type": "object"}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"properties": properties}}}
    names = {"kind": "EchoJob", "plural": "echojobs"}
    definition = {"spec": {"group": "example.com", "names": names, "versions": [version]}}
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "echojobs.example.com.yaml").write_text(yaml.safe_dump(definition))
    (kind,) = read_kinds(tmp_path / "crds", tmp_path / "roles")
    assert (kind.container, kind.types, kind.success) == ("echo", (("Leader", 1), ("Follower", 1)), "Leader")
    assert list(kind.small_job("x")["spec"]["replicaSpecs"]) == ["Leader", "Follower"]
