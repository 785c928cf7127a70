"""JAXJobs: the golden environment of training-operator 1.9.4 with JAX's own variables, and the life cycle."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import JAX, Resource, environment_of, jaxjob, manifest_of
from support.fake_cluster import FakeCluster


def read_by(resource: Resource, index: int = 0, container: str = "jax") -> dict[str, str]:
    return environment_of(manifest_of(parse_job(resource, JAX), "worker", index, framework=JAX), container)


@pytest.mark.parametrize(
    ("workers", "index", "golden"),
    [
        (
            1,
            0,
            "PYTHONUNBUFFERED=1 COORDINATOR_PORT=6666 COORDINATOR_ADDRESS=example-job-worker-0 NUM_PROCESSES=1 "
            "PROCESS_ID=0 JAX_COORDINATOR_ADDRESS=example-job-worker-0:6666 JAX_NUM_PROCESSES=1 JAX_PROCESS_ID=0",
        ),
        (
            3,
            2,
            "PYTHONUNBUFFERED=1 COORDINATOR_PORT=6666 COORDINATOR_ADDRESS=example-job-worker-0 NUM_PROCESSES=3 "
            "PROCESS_ID=2 JAX_COORDINATOR_ADDRESS=example-job-worker-0:6666 JAX_NUM_PROCESSES=3 JAX_PROCESS_ID=2",
        ),
    ],
)
def test_the_golden_values_in_their_order(workers: int, index: int, golden: str) -> None:
    found = read_by(jaxjob(workers), index)
    assert " ".join(f"{name}={value}" for name, value in found.items()) == golden


def test_the_port_of_the_template() -> None:
    job = jaxjob(2)
    (container,) = job["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["ports"] = [{"name": "jaxjob-port", "containerPort": 1234}]
    found = read_by(job, 1)
    assert (found["COORDINATOR_PORT"], found["JAX_COORDINATOR_ADDRESS"]) == ("1234", "example-job-worker-0:1234")


def test_every_container_reads_it() -> None:
    job = jaxjob(2)
    job["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append({"name": "aside", "image": "x"})
    assert read_by(job, container="aside") == read_by(job)


def played(policy: str = "Never") -> FakeCluster:
    job = jaxjob(2)
    job["spec"]["jaxReplicaSpecs"]["Worker"]["restartPolicy"] = policy
    fake_cluster = FakeCluster(job, JAX)
    fake_cluster.start()
    return fake_cluster


def test_all_workers_must_succeed() -> None:
    fake_cluster = played()
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"


@pytest.mark.parametrize("policy", ["Never", "ExitCode"])
def test_a_permanent_failure_of_any_worker_fails_the_job(policy: str) -> None:
    fake_cluster = played(policy)
    fake_cluster.exit("worker", 1, 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["failure"]["pod"] == "example-job-worker-1"


def test_another_number_of_workers_restarts_all() -> None:
    """Each process contains their number."""
    fake_cluster = played()
    before = {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}
    fake_cluster.edit(lambda spec: spec["jaxReplicaSpecs"]["Worker"].update(replicas=3))
    fake_cluster.settle()
    after = {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}
    assert len(after) == 3
    assert not before & after


def test_a_job_without_workers() -> None:
    job = jaxjob(1)
    job["spec"]["jaxReplicaSpecs"]["Worker"]["replicas"] = 0
    with pytest.raises(InvalidJob, match="the job has no replicas"):
        parse_job(job, JAX)
