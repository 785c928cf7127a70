"""JAXJobs: the golden environment of training-operator 1.9.4 with JAX's own variables, and the life cycle."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import host_port
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import (
    JAX,
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    UID,
    XGBOOST,
    Framework,
    Resource,
    environment_of,
    grouped,
    jaxjob,
    manifest_of,
    mxjob,
    paddlejob,
    pytorchjob,
    tfjob,
    xgboostjob,
)
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


UID_TO_PORT = {UID: 21630, "another": 25325}


def on_hosts(uid: str = UID, port: int | None = None, in_group: bool = False) -> Resource:
    """A job of two workers, on the network of their nodes, or the first of them in a group."""
    job = jaxjob(2)
    job["metadata"]["uid"] = uid
    if in_group:
        grouped(job, "Worker", large=(1, {}))
    worker = job["spec"]["jaxReplicaSpecs"]["Worker"]
    template = worker["groups"][0]["template"] if in_group else worker["template"]
    template["spec"]["hostNetwork"] = True
    if port:
        template["spec"]["containers"][0]["ports"] = [{"name": "jaxjob-port", "containerPort": port}]
    return job


@pytest.mark.parametrize(
    ("job", "port"),
    [
        *((on_hosts(uid), port) for uid, port in UID_TO_PORT.items()),
        (on_hosts(in_group=True), UID_TO_PORT[UID]),
        (on_hosts(port=1234), 1234),
        (jaxjob(2), 6666),
    ],
)
def test_jobs_on_the_network_of_their_nodes_do_not_share_a_port(job: Resource, port: int) -> None:
    """The coordinator binds it with SO_REUSEPORT: two jobs on one node would share it without an error."""
    for index in (0, 1):
        found = read_by(job, index)
        assert found["COORDINATOR_PORT"] == str(port)
        assert found["JAX_COORDINATOR_ADDRESS"] == f"example-job-worker-0:{port}"


def test_the_port_of_the_job_occupies_none_of_the_node() -> None:
    """Two replicas of one job may be on one node, and only the first binds the port."""
    (container,) = manifest_of(parse_job(on_hosts(), JAX), "worker", framework=JAX)["spec"]["containers"]
    assert "ports" not in container


def test_ports_of_jobs_are_below_those_that_linux_and_kubernetes_give_away() -> None:
    ports = {host_port.of_job(str(number)) for number in range(3000)}
    assert min(ports) >= 20000
    assert max(ports) < 30000
    assert len(ports) > 2500, "spread over the range"


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"template": None},
        {"template": {"spec": []}},
        {"template": {"spec": {"hostNetwork": "true"}}},
        {"template": {"spec": {"hostNetwork": False}}, "groups": {"template": 1}},
        {"groups": [None, {"template": {"spec": {}}}]},
    ],
)
def test_what_is_not_on_the_network_of_the_node(entry: Resource) -> None:
    assert not host_port.is_on_host(entry)


@pytest.mark.parametrize(
    ("job", "framework", "ports"),
    [
        # a launcher that finds the port in use joins the server of the other job there
        (paddlejob(1, 1), PADDLE, {UID_TO_PORT[UID]}),
        # these fail with an error
        (pytorchjob(1, 1), PYTORCH, {23456}),
        (xgboostjob(1, 1), XGBOOST, {9999}),
        (tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2), TENSORFLOW, {2222}),
        (mxjob().v1().workers(1).resource(), MXNET, {9091}),
    ],
)
def test_which_frameworks_have_such_a_port(job: Resource, framework: Framework, ports: set[int]) -> None:
    (entries,) = (one for name, one in job["spec"].items() if name.endswith("ReplicaSpecs"))
    for entry in entries.values():
        entry["template"]["spec"]["hostNetwork"] = True
    assert {group.port for group in parse_job(job, framework).groups} == ports


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
