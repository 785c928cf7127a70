"""Validation of an XGBoostJob by its CRD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.builders import xgboostjob

Job = dict[str, Any]
NO_MASTER = "exactly one Master, with replicas of 1, is required: add it or correct its replicas"


def written(master: int = 1, worker: int = 0, **spec: Any) -> Job:
    """An XGBoostJob as a user writes it."""
    job = xgboostjob(master, worker, **spec)
    job["metadata"] = {"name": job["metadata"]["name"]}
    return job


def changed(job: Job, type_: str, **fields: Any) -> Job:
    job["spec"]["xgbReplicaSpecs"][type_].update(fields)
    return job


def named(job: Job, type_: str, spelling: str) -> Job:
    replicas = job["spec"]["xgbReplicaSpecs"]
    replicas[spelling] = replicas.pop(type_)
    return job


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(written(), id="a master alone"),
        pytest.param(written(1, 2), id="a master and workers"),
        pytest.param(named(written(1, 2), "Master", "master"), id="in any case"),
        pytest.param(changed(written(1, 2), "Worker", restartPolicy="ExitCode"), id="restart policy"),
        pytest.param(written(1, 1, runPolicy={"cleanPodPolicy": "All", "suspend": True}), id="run policy"),
    ],
)
def test_good(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (written(0, 1), NO_MASTER),
        (written(2, 1), NO_MASTER),
        (changed(written(1, 1), "Master", replicas=0), NO_MASTER),
        (named(written(1, 1), "Worker", "PS"), 'unknown replica type [\\"PS\\"]: use Master, Worker'),
        (changed(written(1, 1), "Worker", template=None), "xgbReplicaSpecs.Worker.template"),
        (written(1, elasticPolicy={}), "unknown field"),
    ],
)
def test_bad(validation_error: Callable[[Job], str], job: Job, message: str) -> None:
    assert message in validation_error(job)


def test_a_container_of_the_frameworks_name(validation_error: Callable[[Job], str]) -> None:
    job = written()
    job["spec"]["xgbReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]["name"] = "main"
    assert "xgboost" in validation_error(job)
