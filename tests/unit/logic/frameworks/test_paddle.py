"""PaddleJobs: the golden environment of training-operator 1.9.4, and the life cycle."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from support.builders import PADDLE, Resource, grouped, manifest_of, paddlejob
from support.fake_cluster import FakeCluster

OWN_IP = "POD_IP_DUMMY=status.podIP"


def read_by(resource: Resource, type_: str, index: int = 0) -> list[str]:
    """The entries of `env` in their order; the field instead of a value."""
    pod = manifest_of(parse_job(resource, PADDLE), type_, index, framework=PADDLE)
    (container,) = pod["spec"]["containers"]
    return [
        f"{one['name']}={one['value'] if 'value' in one else one['valueFrom']['fieldRef']['fieldPath']}"
        for one in container["env"]
    ]


@pytest.mark.parametrize(
    ("index", "meeting"),
    [
        (0, f"{OWN_IP} PADDLE_MASTER=$(POD_IP_DUMMY):36543"),
        (1, "PADDLE_MASTER=example-job-worker-0:36543"),
    ],
)
def test_workers_alone(index: int, meeting: str) -> None:
    golden = f"PYTHONUNBUFFERED=1 PADDLE_JOB_ID=example-job PADDLE_NNODES=2 {meeting} PADDLE_RANK={index}"
    assert read_by(paddlejob(worker=2), "worker", index) == golden.split()


def test_the_rank_of_the_template_has_precedence() -> None:
    """A program may count the ranks otherwise, or leave them to the launchers."""
    job = paddlejob(worker=2)
    (container,) = job["spec"]["paddleReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "PADDLE_RANK", "value": "-1"}]
    for index in (0, 1):
        assert [one for one in read_by(job, "worker", index) if "RANK" in one] == ["PADDLE_RANK=-1"]


def test_groups_of_workers_have_one_order_of_ranks() -> None:
    job = grouped(paddlejob(worker=3), "Worker", large=(1, {"image": "large:1"}))
    assert [read_by(job, "worker", index)[-1] for index in range(3)] == [f"PADDLE_RANK={index}" for index in range(3)]


@pytest.mark.parametrize(
    ("type_", "index", "meeting", "part"),
    [
        (
            "master",
            0,
            f"{OWN_IP} PADDLE_MASTER=$(POD_IP_DUMMY):36543",
            "PADDLE_SERVER_NUM=1 PADDLE_TRAINER_NUM=0",
        ),
        ("master", 1, "PADDLE_MASTER=example-job-master-0:36543", "PADDLE_SERVER_NUM=1 PADDLE_TRAINER_NUM=0"),
        ("worker", 0, "PADDLE_MASTER=example-job-master-0:36543", "PADDLE_SERVER_NUM=0 PADDLE_TRAINER_NUM=1"),
    ],
)
def test_masters_are_parameter_servers(type_: str, index: int, meeting: str, part: str) -> None:
    golden = f"PYTHONUNBUFFERED=1 PADDLE_JOB_ID=example-job PADDLE_NNODES=4 {meeting} {part}"
    assert read_by(paddlejob(master=2, worker=2), type_, index) == golden.split()


def test_the_port_named_master_is_that_of_the_first_replica() -> None:
    job = paddlejob(master=1, worker=1)
    for type_, port in (("Master", 1234), ("Worker", 5678)):
        (container,) = job["spec"]["paddleReplicaSpecs"][type_]["template"]["spec"]["containers"]
        container["ports"] = [{"name": "master", "containerPort": port}]
    assert "PADDLE_MASTER=example-job-master-0:1234" in read_by(job, "worker")


def test_the_elastic_policy_changes_nothing() -> None:
    """As in training-operator, which only completes its fields."""
    plain, elastic = paddlejob(worker=2), paddlejob(worker=2, elasticPolicy={"minReplicas": 1, "maxReplicas": 4})
    assert read_by(elastic, "worker") == read_by(plain, "worker")
    assert parse_job(elastic, PADDLE).elastic_type == ""


@pytest.mark.parametrize(
    ("masters", "ends"),
    [(0, [("worker", 0), ("worker", 1)]), (2, [("master", 1), ("master", 0)])],
    ids=["workers alone", "parameter servers"],
)
def test_all_replicas_of_the_deciding_type_must_succeed(masters: int, ends: list[tuple[str, int]]) -> None:
    fake_cluster = FakeCluster(paddlejob(master=masters, worker=2), PADDLE)
    fake_cluster.start()
    for number, (type_, index) in enumerate(ends):
        assert fake_cluster.status["state"] == "Running", number
        fake_cluster.exit(type_, index, 0)
        fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"
