"""Validation of a Caffe2Job by its CRD."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders import caffe2job
from support.upstream_manifests import from_each_source, load

Job = dict[str, Any]

NFS = {"backendType": "nfs", "nfsPath": "/shared"}


def written(workers: int | None = 2, **spec: Any) -> Job:
    """A Caffe2Job as a user writes it."""
    job = caffe2job(workers, **spec)
    job["metadata"] = {"name": job["metadata"]["name"]}
    return copy.deepcopy(job)


def without_backend(workers: int | None) -> Job:
    job = written(workers)
    del job["spec"]["backendSpecs"]
    return job


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(written(), id="redis"),
        pytest.param(written(backendSpecs=NFS), id="nfs"),
        pytest.param(written(1, backendSpecs={"backendType": "none"}), id="none, alone"),
        pytest.param(without_backend(1), id="alone"),
        pytest.param(without_backend(None), id="alone by default"),
        pytest.param(written(backendSpecs={"redisHost": "r"}), id="redis by default"),
        pytest.param(written(backendSpecs={"backendType": "", "redisHost": "r"}), id="an empty type"),
        pytest.param(written(RuntimeID="1529307087"), id="runtime id"),
        pytest.param(written(RuntimeId="aycw", RuntimeID="aycw"), id="runtime id, twice"),
        pytest.param(written(runPolicy={"cleanPodPolicy": "None", "backoffLimit": 3}), id="run policy"),
        pytest.param(
            written(terminationPolicy={"chief": {"replicaName": "WORKER", "replicaIndex": 0}}), id="termination policy"
        ),
    ],
)
def test_good(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize("path", from_each_source("caffe2-redis.yaml"))
def test_upstream_manifest(validation_error: Callable[[Job], str], path: Path) -> None:
    assert validation_error(load(path)) == ""


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (
            written(backendSpecs={"backendType": "redis"}),
            "backendSpecs.redisHost is missing: set it to the Redis server",
        ),
        (written(backendSpecs={"backendType": "redis", "redisHost": ""}), "backendSpecs.redisHost is missing"),
        (without_backend(2), "backendSpecs.redisHost is missing"),
        (
            written(backendSpecs={"backendType": "nfs"}),
            "backendSpecs.nfsPath is missing: set it to the rendezvous directory",
        ),
        (written(1, backendSpecs={"backendType": "nfs", "nfsPath": ""}), "backendSpecs.nfsPath is missing"),
        (written(backendSpecs={"backendType": "none"}), "several replicas cannot find each other: set it to redis"),
        (written(backendSpecs={"backendType": "mpi"}), 'Unsupported value: \\"mpi\\"'),
        (written(backendSpecs={"redisHost": "r", "redisPort": 0}), "should be greater than or equal to 1"),
        (written(backendSpecs={"redisHost": "r", "redisport": 1}), "write redisPort"),
        (written(0), "should be greater than or equal to 1"),
        (written(RuntimeID="UPPER"), "RuntimeID is part of host names"),
        (written(RuntimeID="a", RuntimeId="b"), "RuntimeID and RuntimeId are aliases"),
        ({**written(), "metadata": {"name": "1job"}}, "pods are named after the job"),
        ({**written(), "metadata": {"name": "j" * 55}}, "has 55 characters, and may have at most 54"),
    ],
)
def test_bad_with_the_field_and_the_fix(validation_error: Callable[[Job], str], job: Job, message: str) -> None:
    assert message in validation_error(job)


def test_a_container_of_another_name(validation_error: Callable[[Job], str]) -> None:
    job = written()
    job["spec"]["replicaSpecs"]["template"]["spec"]["containers"][0]["name"] = "train"
    assert "requires a container named caffe2, which runs the training, and has" in validation_error(job)


def test_restarting_all_replicas_excludes_the_policy_always(validation_error: Callable[[Job], str]) -> None:
    job = written()
    job["spec"]["replicaSpecs"]["template"]["spec"]["restartPolicy"] = "Always"
    assert validation_error(job) == ""
    job["spec"]["runPolicy"] = {"restartScope": "Job"}
    assert "use OnFailure or ExitCode" in validation_error(job)
