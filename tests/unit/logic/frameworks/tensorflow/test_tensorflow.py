"""TensorFlow's jobs in all flavors: validation, success target and status."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import TENSORFLOW, manifest_of, tfjob
from support.fake_cluster import FakeCluster

LISTS = ["tensorflow.org/v1alpha1", "kubeflow.org/v1alpha1"]


@pytest.mark.parametrize("api_version", LISTS)
@pytest.mark.parametrize("masters", [None, 0, 2])
def test_exactly_one_master(api_version: str, masters: int | None) -> None:
    counts = {"worker": 1} if masters is None else {"master": masters, "worker": 1}
    with pytest.raises(InvalidJob, match="exactly 1 Master"):
        parse_job(tfjob(api_version, **counts), TENSORFLOW)


@pytest.mark.parametrize("type_", ["chief", "evaluator", "scheduler"])
def test_types_of_v1alpha1(type_: str) -> None:
    with pytest.raises(InvalidJob, match=r"tfReplicaType: .* must be one of MASTER, WORKER, PS$"):
        parse_job(tfjob(master=1, **{type_: 1}), TENSORFLOW)


def test_both_spellings_at_once() -> None:
    resource = tfjob(master=1)
    resource["spec"]["replica_specs"] = resource["spec"]["replicaSpecs"]
    with pytest.raises(InvalidJob, match="keep one of them"):
        parse_job(resource, TENSORFLOW)


@pytest.mark.parametrize(
    ("counts", "chief"),
    [
        ({"worker": 2, "chief": 1, "ps": 1}, "Chief"),
        ({"worker": 2, "master": 1}, "Master"),
        ({"ps": 1, "worker": 2, "evaluator": 1}, "Worker"),
    ],
)
def test_the_success_target_in_v1(counts: dict[str, int], chief: str) -> None:
    job = parse_job(tfjob("kubeflow.org/v1", "tfReplicaSpecs", **counts), TENSORFLOW)
    assert (job.success_target.type, job.success_target.index) == (chief, 0)


def test_another_success_target() -> None:
    resource = tfjob(master=1, worker=2)
    resource["spec"]["terminationPolicy"] = {"chief": {"replicaName": "WORKER", "replicaIndex": 1}}
    job = parse_job(resource, TENSORFLOW)
    assert (job.success_target.type, job.success_target.index) == ("Worker", 1)


@pytest.mark.parametrize(
    ("code", "reason", "state"),
    [(0, "", "Succeeded"), (1, "", "Failed"), (127, "", "Failed"), (137, "OOMKilled", "Failed"), (128, "", "Running"), (255, "", "Running")],
)  # fmt: skip
def test_the_masters_exit_code(code: int, reason: str, state: str) -> None:
    fake_cluster = FakeCluster(tfjob(master=1, worker=1, ps=2), TENSORFLOW)
    fake_cluster.start()
    fake_cluster.exit("master", 0, code, reason)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == state


@pytest.mark.parametrize("type_", ["worker", "ps"])
@pytest.mark.parametrize("code", [0, 1, 137])
def test_workers_and_servers_never_end_the_job(type_: str, code: int) -> None:
    fake_cluster = FakeCluster(tfjob(master=1, worker=1, ps=1), TENSORFLOW)
    fake_cluster.start()
    fake_cluster.exit(type_, 0, code)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"


def test_labels_of_the_v1alpha1_flavors() -> None:
    labels = manifest_of(parse_job(tfjob(master=1, ps=2), TENSORFLOW), "ps", 1, framework=TENSORFLOW)["metadata"][
        "labels"
    ]
    assert (
        labels.items()
        >= {
            "tensorflow.org": "",
            "job_type": "PS",
            "runtime_id": "76no",
            "tf_job_name": "example-job",
            "task_index": "1",
        }.items()
    )


def test_labels_of_v1() -> None:
    job = parse_job(tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1), TENSORFLOW)

    def labels(type_: str) -> Any:
        return manifest_of(job, type_, framework=TENSORFLOW)["metadata"]["labels"]

    assert (
        labels("chief").items()
        >= {
            "training.kubeflow.org/operator-name": "tfjob-controller",
            "training.kubeflow.org/job-name": "example-job",
            "training.kubeflow.org/replica-type": "chief",
            "training.kubeflow.org/replica-index": "0",
            "training.kubeflow.org/job-role": "master",
        }.items()
    )
    assert "training.kubeflow.org/job-role" not in labels("worker")
