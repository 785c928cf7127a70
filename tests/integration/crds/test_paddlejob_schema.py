"""Validation of a PaddleJob by its CRD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.builders import paddlejob

Job = dict[str, Any]


ELASTIC = {"minReplicas": 1, "maxReplicas": 3, "maxRestarts": 3, "metrics": [{"type": "Resource"}]}


def written(master: int = 0, worker: int = 1, **spec: Any) -> Job:
    """A PaddleJob as a user writes it."""
    job = paddlejob(master, worker, **spec)
    job["metadata"] = {"name": job["metadata"]["name"]}
    return job


def named(job: Job, spelling: str) -> Job:
    replicas = job["spec"]["paddleReplicaSpecs"]
    replicas[spelling] = replicas.pop("Worker")
    return job


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(written(0, 2), id="workers alone"),
        pytest.param(written(2, 2), id="parameter servers"),
        pytest.param(named(written(1, 2), "worker"), id="in any case"),
        pytest.param(written(0, 2, elasticPolicy=ELASTIC), id="elastic policy"),
        pytest.param(written(0, 2, runPolicy={"cleanPodPolicy": "All", "backoffLimit": 3}), id="run policy"),
    ],
)
def test_good(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (written(0, 0), "at least one replica of Master or Worker, which decides success, is required"),
        (named(written(1, 1), "PS"), 'unknown replica type [\\"PS\\"]: use Master, Worker'),
        (written(elasticPolicy={"minReplicas": 3, "maxReplicas": 2}), "minReplicas is greater than maxReplicas"),
        (written(elasticPolicy={"rdzvBackend": "c10d"}), "unknown field"),
    ],
)
def test_bad(validation_error: Callable[[Job], str], job: Job, message: str) -> None:
    assert message in validation_error(job)


def test_a_container_of_the_frameworks_name(validation_error: Callable[[Job], str]) -> None:
    job = written()
    job["spec"]["paddleReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "main"
    assert "paddle" in validation_error(job)
