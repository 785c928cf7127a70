"""The environment of PyTorch's processes, by the rules of training-operator."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.pytorch.rendezvous import (
    pytorch_environment,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import PYTORCH, environment_of, grouped, manifest_of, pytorchjob

UNBUFFERED = {"PYTHONUNBUFFERED": "1"}
MEETING = {"MASTER_ADDR": "example-job-master-0", "MASTER_PORT": "23456"}


def read_by(resource: dict[str, Any], type_: str, index: int = 0, container: str = "pytorch") -> dict[str, str]:
    return environment_of(manifest_of(parse_job(resource, PYTORCH), type_, index, framework=PYTORCH), container)


def at_master(rank: int, world: int, processes: str = "auto", nodes: int = 3) -> dict[str, str]:
    return {
        **UNBUFFERED,
        **MEETING,
        **{f"PET_{name}": value for name, value in MEETING.items()},
        "WORLD_SIZE": str(world),
        "RANK": str(rank),
        "PET_NODE_RANK": str(rank),
        "PET_NPROC_PER_NODE": processes,
        "PET_NNODES": str(nodes),
    }


@pytest.mark.parametrize(("type_", "index", "rank"), [("master", 0, 0), ("worker", 0, 1), ("worker", 1, 2)])
def test_a_master_and_its_workers(type_: str, index: int, rank: int) -> None:
    assert read_by(pytorchjob(master=1, worker=2), type_, index) == at_master(rank, 3)


@pytest.mark.parametrize(("processes", "world"), [("4", 12), ("gpu", 3), ("cpu", 3), ("auto", 3)])
def test_several_processes_in_a_pod(processes: str, world: int) -> None:
    job = pytorchjob(master=1, worker=2, nprocPerNode=processes)
    assert read_by(job, "worker") == at_master(1, world, processes)


def test_the_port_is_the_masters() -> None:
    job = pytorchjob(master=1, worker=1)
    for type_, port in (("Master", 1234), ("Worker", 5678)):
        container = job["spec"]["pytorchReplicaSpecs"][type_]["template"]["spec"]["containers"][0]
        container["ports"] = [{"name": "pytorchjob-port", "containerPort": port}]
    assert read_by(job, "worker")["MASTER_PORT"] == "1234"


def test_workers_alone_get_torchruns_numbers_only() -> None:
    assert read_by(pytorchjob(worker=2), "worker", 1) == {
        **UNBUFFERED,
        "PET_NPROC_PER_NODE": "auto",
        "PET_NNODES": "2",
    }


def test_every_container_reads_it() -> None:
    job = pytorchjob(master=1)
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"].append(
        {"name": "aside", "image": "x"}
    )
    assert read_by(job, "master", container="aside") == at_master(0, 1, nodes=1)


@pytest.mark.parametrize(
    ("policy", "gets"),
    [
        ({}, {"PET_NNODES": "2:2"}),
        ({"minReplicas": 1}, {"PET_NNODES": "1:1"}),
        ({"maxReplicas": 4}, {"PET_NNODES": "4:4"}),
        ({"minReplicas": 1, "maxReplicas": 4}, {"PET_NNODES": "1:4"}),
        ({"minReplicas": 4, "maxReplicas": 4}, {"PET_NNODES": "4:4"}),
        ({"rdzvHost": "etcd", "rdzvPort": 2379}, {"PET_RDZV_ENDPOINT": "etcd:2379"}),
        ({"rdzvBackend": "etcd-v2"}, {"PET_RDZV_BACKEND": "etcd-v2"}),
        ({"rdzvId": "one"}, {"PET_RDZV_ID": "one"}),
        (
            {"rdzvConf": [{"key": "timeout", "value": "60"}, {"key": "is_host", "value": "true"}]},
            {"PET_RDZV_CONF": "timeout=60,is_host=true"},
        ),
        ({"maxRestarts": 0}, {"PET_MAX_RESTARTS": "0"}),
        ({"maxRestarts": 100}, {"PET_MAX_RESTARTS": "100"}),
        ({"maxRestarts": None}, {"PET_MAX_RESTARTS": "10"}),
        ({"standalone": False}, {}),
        ({"nProcPerNode": 2}, {"PET_NPROC_PER_NODE": "2"}),
    ],
)
def test_elastic_workers(policy: dict[str, Any], gets: dict[str, str]) -> None:
    assert read_by(pytorchjob(worker=2, elasticPolicy=policy), "worker") == {
        **UNBUFFERED,
        "PET_NPROC_PER_NODE": "auto",
        "PET_NNODES": "2:2",
        "PET_RDZV_ENDPOINT": "example-job-worker-0:23456",
        "PET_RDZV_BACKEND": "c10d",
        "PET_MAX_RESTARTS": "10",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        **gets,
    }


@pytest.mark.parametrize(("policy", "gets"), [({}, {}), ({"maxRestarts": 2}, {"PET_MAX_RESTARTS": "2"})])
def test_pods_that_train_by_themselves_lose_no_member(policy: dict[str, Any], gets: dict[str, str]) -> None:
    assert read_by(pytorchjob(worker=2, elasticPolicy={"standalone": True, **policy}), "worker") == {
        **UNBUFFERED,
        "PET_NPROC_PER_NODE": "auto",
        "PET_NNODES": "1:1",
        "PET_RDZV_ENDPOINT": "example-job-worker-0:23456",
        "PET_RDZV_BACKEND": "c10d",
        "PET_STANDALONE": "1",
        **gets,
    }


def test_only_elastic_workers_have_the_settings_of_their_rendezvous() -> None:
    made = read_by(pytorchjob(master=1, worker=1), "worker")
    assert not {"PET_MAX_RESTARTS", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"} & set(made)


def with_limits(job: dict[str, Any], type_: str, **limits: Any) -> dict[str, Any]:
    (container,) = job["spec"]["pytorchReplicaSpecs"][type_]["template"]["spec"]["containers"]
    container["resources"] = {"limits": limits}
    return job


@pytest.mark.parametrize("elastic", [{}, {"elasticPolicy": {"minReplicas": 1}}], ids=["fixed", "elastic"])
@pytest.mark.parametrize(
    ("spec", "limits", "processes"),
    [
        ({}, {"cpu": "1500m"}, "2"),
        ({"nprocPerNode": "auto"}, {"cpu": 3}, "3"),  # which training-operator writes into each job without a number
        ({}, {"memory": "1Gi"}, "auto"),
        ({}, {"cpu": 3, "nvidia.com/gpu": 2}, "auto"),
        ({"nprocPerNode": "4"}, {"cpu": 1}, "4"),
        ({"nprocPerNode": "cpu"}, {"cpu": 1}, "cpu"),
        ({"nprocPerNode": "gpu"}, {"cpu": 1}, "gpu"),
    ],
)
def test_processes_of_a_pod_with_a_cpu_limit(
    spec: dict[str, Any], limits: dict[str, Any], processes: str, elastic: dict[str, Any]
) -> None:
    """torchrun's `auto` counts the node's processors, whatever the pod may use."""
    made = read_by(with_limits(pytorchjob(master=1, worker=1, **spec, **elastic), "Worker", **limits), "worker")
    assert made["PET_NPROC_PER_NODE"] == processes
    assert made["WORLD_SIZE"] == ("8" if processes == "4" else "2"), "a program without torchrun is one process"


def test_each_template_has_its_own_processes() -> None:
    job = with_limits(pytorchjob(master=1, worker=3), "Worker", cpu=2)
    job = grouped(job, "Worker", large=(1, {"name": "pytorch", "resources": {"limits": {"cpu": 8}}}))
    pods = [("master", 0), ("worker", 0), ("worker", 1), ("worker", 2)]
    assert [read_by(job, *pod)["PET_NPROC_PER_NODE"] for pod in pods] == ["auto", "8", "2", "2"]


def test_the_processes_of_an_elastic_policy() -> None:
    job = with_limits(pytorchjob(worker=2, elasticPolicy={"nProcPerNode": 4}), "Worker", cpu=1)
    assert read_by(job, "worker")["PET_NPROC_PER_NODE"] == "4"


def test_a_sidecars_limit_is_not_the_programs() -> None:
    job = pytorchjob(worker=2)
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append(
        {"name": "aside", "image": "x", "resources": {"limits": {"cpu": 1}}}
    )
    assert read_by(job, "worker")["PET_NPROC_PER_NODE"] == "auto"


def test_a_cluster_spec_without_templates() -> None:
    """That of a playbook."""
    cluster = {
        "replicas": {"Worker": [{"host": "w", "port": 1, "rank": 0}]},
        "spec": {},
        "total": 1,
        "task": {"type": "Worker", "index": 0, "rank": 0},
    }
    assert pytorch_environment(cluster)["PET_NPROC_PER_NODE"] == "auto"


def test_the_elastic_policys_processes_are_torchruns_only() -> None:
    """training-operator's WORLD_SIZE includes spec.nprocPerNode."""
    made = read_by(pytorchjob(master=1, worker=1, elasticPolicy={"nProcPerNode": 4}), "worker")
    assert (made["WORLD_SIZE"], made["PET_NPROC_PER_NODE"]) == ("2", "4")


@pytest.mark.parametrize(
    ("workers", "spec", "said"),
    [
        (1, {"nprocPerNode": 2}, "spec.nprocPerNode is 2: it must be auto, cpu, gpu or a number in quotes"),
        (1, {"nprocPerNode": "\u00b2"}, "spec.nprocPerNode is '\u00b2': it must be"),
        (0, {"elasticPolicy": {"minReplicas": 1}}, "spec.elasticPolicy needs workers, of which the job has none"),
        (
            1,
            {"nprocPerNode": "2", "elasticPolicy": {"nProcPerNode": 2}},
            "spec.nprocPerNode and spec.elasticPolicy.nProcPerNode are one setting",
        ),
        (1, {"elasticPolicy": {"rdzvConf": ["x"]}}, "spec.elasticPolicy.rdzvConf must be a list of maps with key"),
        (1, {"elasticPolicy": {"rdzvConf": 5}}, "spec.elasticPolicy.rdzvConf must be a list of maps with key"),
        (1, {"elasticPolicy": {"metrics": {}}}, "spec.elasticPolicy.metrics must be a list of metrics"),
        (1, {"elasticPolicy": {"metrics": ["cpu"]}}, "spec.elasticPolicy.metrics[0] must be a map with type"),
        (
            1,
            {"elasticPolicy": {"metrics": [{"type": "Pods"}, {"type": "cpu"}]}},
            "spec.elasticPolicy.metrics[1].type is 'cpu': it must be one of Resource, ContainerResource, Pods",
        ),
        (
            1,
            {"elasticPolicy": {"minReplicas": "1"}},
            "spec.elasticPolicy.minReplicas is '1': it must be a whole number",
        ),
        (1, {"elasticPolicy": {"maxReplicas": 0}}, "spec.elasticPolicy.maxReplicas is 0: it must be a whole number"),
        (
            1,
            {"elasticPolicy": {"minReplicas": 3, "maxReplicas": 2}},
            "spec.elasticPolicy.minReplicas is 3, and maxReplicas 2: lower it, or raise maxReplicas",
        ),
        (3, {"elasticPolicy": {"maxReplicas": 2}}, "the job has 3 workers, and spec.elasticPolicy.maxReplicas is 2"),
    ],
)
def test_jobs_that_passed_no_schema_are_validated(workers: int, spec: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidJob) as raised:
        parse_job(pytorchjob(master=1, worker=workers, **spec), PYTORCH)
    assert said in str(raised.value)


def test_a_bound_that_is_null_is_not_given() -> None:
    made = read_by(pytorchjob(worker=2, elasticPolicy={"minReplicas": None, "maxReplicas": 4}), "worker")
    assert made["PET_NNODES"] == "4:4"
