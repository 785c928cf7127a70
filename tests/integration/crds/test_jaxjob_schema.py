"""Validation of a JAXJob by its CRD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.builders import jaxjob

Job = dict[str, Any]


def written(worker: int = 1, **spec: Any) -> Job:
    """A JAXJob as a user writes it."""
    job = jaxjob(worker, **spec)
    job["metadata"] = {"name": job["metadata"]["name"]}
    return job


def named(job: Job, spelling: str) -> Job:
    replicas = job["spec"]["jaxReplicaSpecs"]
    replicas[spelling] = replicas.pop("Worker")
    return job


def counted(job: Job, replicas: int) -> Job:
    job["spec"]["jaxReplicaSpecs"]["Worker"]["replicas"] = replicas
    return job


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(written(), id="one worker"),
        pytest.param(written(3), id="workers"),
        pytest.param(named(written(2), "worker"), id="in any case"),
        pytest.param(written(2, runPolicy={"cleanPodPolicy": "All", "backoffLimit": 3}), id="run policy"),
    ],
)
def test_good(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (counted(written(), 0), "at least one replica of Worker, which decides success, is required"),
        (written(0), "at least one replica of Worker, which decides success, is required"),
        (named(written(), "Master"), 'unknown replica type [\\"Master\\"]: use Worker'),
        (written(elasticPolicy={}), "unknown field"),
    ],
)
def test_bad(validation_error: Callable[[Job], str], job: Job, message: str) -> None:
    assert message in validation_error(job)


def test_a_container_of_the_frameworks_name(validation_error: Callable[[Job], str]) -> None:
    job = written()
    job["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "main"
    assert "jax" in validation_error(job)
