"""The environment of XGBoost's processes: the golden values of training-operator 1.9.4."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import shared_env_configmap
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from support.builders import XGBOOST, environment_of, manifest_of, seen_from, xgboostjob


def read_by(resource: dict[str, Any], type_: str, index: int = 0, container: str = "xgboost") -> dict[str, str]:
    return environment_of(manifest_of(parse_job(resource, XGBOOST), type_, index, framework=XGBOOST), container)


@pytest.mark.parametrize(
    ("workers", "type_", "index", "golden"),
    [
        (
            0,
            "master",
            0,
            "MASTER_PORT=9999 MASTER_ADDR=example-job-master-0 WORLD_SIZE=1 RANK=0 PYTHONUNBUFFERED=1",
        ),
        (
            1,
            "worker",
            0,
            "MASTER_PORT=9999 MASTER_ADDR=example-job-master-0 WORLD_SIZE=2 RANK=1 PYTHONUNBUFFERED=1 "
            "WORKER_PORT=9999 WORKER_ADDRS=example-job-worker-0",
        ),
        (
            2,
            "master",
            0,
            "MASTER_PORT=9999 MASTER_ADDR=example-job-master-0 WORLD_SIZE=3 RANK=0 PYTHONUNBUFFERED=1 "
            "WORKER_PORT=9999 WORKER_ADDRS=example-job-worker-0,example-job-worker-1",
        ),
        (
            2,
            "worker",
            1,
            "MASTER_PORT=9999 MASTER_ADDR=example-job-master-0 WORLD_SIZE=3 RANK=2 PYTHONUNBUFFERED=1 "
            "WORKER_PORT=9999 WORKER_ADDRS=example-job-worker-0,example-job-worker-1",
        ),
    ],
)
def test_the_golden_values_in_their_order(workers: int, type_: str, index: int, golden: str) -> None:
    found = read_by(xgboostjob(worker=workers), type_, index)
    assert " ".join(f"{name}={value}" for name, value in found.items()) == golden


def test_each_type_has_its_own_port() -> None:
    job = xgboostjob(worker=1)
    for type_, port in (("Master", 1234), ("Worker", 5678)):
        container = job["spec"]["xgbReplicaSpecs"][type_]["template"]["spec"]["containers"][0]
        container["ports"] = [{"name": "xgboostjob-port", "containerPort": port}]
    found = read_by(job, "worker")
    assert (found["MASTER_PORT"], found["WORKER_PORT"]) == ("1234", "5678")


def test_workers_without_replicas_are_none() -> None:
    job = xgboostjob(worker=1)
    job["spec"]["xgbReplicaSpecs"]["Worker"]["replicas"] = 0
    assert "WORKER_ADDRS" not in read_by(job, "master")


def test_every_container_reads_it() -> None:
    job = xgboostjob(worker=1)
    containers = job["spec"]["xgbReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    containers.append({"name": "aside", "image": "x"})
    assert read_by(job, "worker", container="aside") == read_by(job, "worker")


def test_the_names_of_many_workers_are_stored_once() -> None:
    job = parse_job(xgboostjob(worker=100), XGBOOST)
    shared = shared_env_configmap.shared_by(job, XGBOOST.hooks.environment, seen_from(job, "Master", framework=XGBOOST))
    assert shared is not None
    assert list(shared.prefixes) == ["WORKER_ADDRS"]
