"""Validation of a PyTorchJob by its CRD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.builders import pytorchjob

Job = dict[str, Any]

ELASTIC = {
    "minReplicas": 1,
    "maxReplicas": 3,
    "rdzvBackend": "c10d",
    "rdzvHost": "meeting",
    "rdzvPort": 29400,
    "rdzvId": "one",
    "rdzvConf": [{"key": "timeout", "value": "60"}],
    "standalone": False,
    "maxRestarts": 3,
    "metrics": [],
}


def written(master: int = 0, worker: int = 0, **spec: Any) -> Job:
    """A PyTorchJob as a user writes it."""
    job = pytorchjob(master, worker, **spec)
    job["metadata"] = {"name": job["metadata"]["name"]}
    return job


def named(job: Job, type_: str, spelling: str) -> Job:
    replicas = job["spec"]["pytorchReplicaSpecs"]
    replicas[spelling] = replicas.pop(type_)
    return job


def counted(job: Job, type_: str, replicas: int) -> Job:
    job["spec"]["pytorchReplicaSpecs"][type_]["replicas"] = replicas
    return job


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(written(1, 2), id="master and workers"),
        pytest.param(written(1), id="a master alone"),
        pytest.param(written(0, 2), id="workers alone"),
        pytest.param(named(written(1, 2), "Worker", "worker"), id="in any case"),
        *(
            pytest.param(written(1, 2, nprocPerNode=n), id=f"{n} processes")
            for n in ("auto", "cpu", "gpu", "npu", "1", "16")
        ),
        pytest.param(written(0, 2, elasticPolicy=ELASTIC), id="elastic"),
        pytest.param(written(1, 2, elasticPolicy={}), id="elastic beside a master"),
        pytest.param(written(0, 2, elasticPolicy={"nProcPerNode": 2}), id="the deprecated elasticPolicy.nProcPerNode"),
        pytest.param(
            written(1, 2, runPolicy={"cleanPodPolicy": "All", "backoffLimit": 3, "suspend": True}), id="run policy"
        ),
    ],
)
def test_good(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (counted(written(1, 2), "Master", 2), "a job has at most one Master: set its replicas to 1"),
        (counted(written(1, 2), "Master", 0), "Master has no replica: set its replicas to 1, or remove the entry"),
        (
            counted(written(0, 1), "Worker", 0),
            "at least one replica of Master or Worker, which decides success, is required",
        ),
        (named(written(1, 2), "Worker", "Server"), 'unknown replica type [\\"Server\\"]: use Master, Worker'),
        (
            written(1, nprocPerNode="0"),
            "nprocPerNode must be auto, cpu, gpu, another device that torchrun knows, or a number",
        ),
        (
            written(1, nprocPerNode="-1"),
            "nprocPerNode must be auto, cpu, gpu, another device that torchrun knows, or a number",
        ),
        (written(0, 3, elasticPolicy={"maxReplicas": 2}), "more workers than elasticPolicy.maxReplicas"),
        (written(1, nprocPerNode=2), "nprocPerNode"),
        (written(1, elasticPolicy={}), "elasticPolicy requires workers, and the job has none: add Worker"),
        (
            written(0, 2, nprocPerNode="2", elasticPolicy={"nProcPerNode": 2}),
            "nprocPerNode and elasticPolicy.nProcPerNode are aliases: keep nprocPerNode",
        ),
        (written(0, 2, elasticPolicy={"minReplicas": 3, "maxReplicas": 2}), "minReplicas is greater than maxReplicas"),
        (
            written(0, 2, elasticPolicy={"minReplicas": 1}, runPolicy={"restartScope": "Job"}),
            "elastic replicas of type Worker do not support: remove restartScope",
        ),
        (written(0, 2, elasticPolicy={"minReplicas": 0}), "should be greater than or equal to 1"),
        (written(0, 2, elasticPolicy={"rdzvBackend": ""}), "should be at least 1 chars long"),
        (written(1, terminationPolicy={"chief": {"replicaName": "Master"}}), "unknown field"),
        (written(0, 2, elasticPolicy={"rdzvConf": [{"value": "60"}]}), "key: Required value"),
        (written(0, 2, elasticPolicy={"metrics": [{}]}), "metrics[0].type: Required value"),
        (
            written(0, 2, elasticPolicy={"metrics": [{"type": "cpu"}]}),
            "metrics[0].type: Unsupported value",
        ),
    ],
)
def test_bad(validation_error: Callable[[Job], str], job: Job, message: str) -> None:
    assert message in validation_error(job)


def test_a_container_of_the_frameworks_name(validation_error: Callable[[Job], str]) -> None:
    job = written(1)
    job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["name"] = "main"
    assert "pytorch" in validation_error(job)
