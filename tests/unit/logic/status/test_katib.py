"""Katib's defaults for the trials of Kubeflow's training jobs, on the statuses and the labels that the operator writes.

Katib evaluates two GJSON expressions on the job, the one for a failure first; one that yields an object or a list that
is not empty holds, and where none holds, the trial runs. Katib sets these defaults for TFJob, PyTorchJob, XGBoostJob
and MPIJob; for the other kinds a user writes the same. It collects metrics from the pods with the primary labels.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import gjson
import pytest
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import (
    JAX,
    MPI,
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    Resource,
    jaxjob,
    mpijob,
    mxjob,
    paddlejob,
    pytorchjob,
    tfjob,
    xgboostjob,
)
from support.fake_cluster import FakeCluster

SUCCESS = 'status.conditions.#(type=="Succeeded")#|#(status=="True")#'
FAILURE = 'status.conditions.#(type=="Failed")#|#(status=="True")#'
PRIMARY = {"training.kubeflow.org/job-role": "master"}
PRIMARY_OF_MPI = {"training.kubeflow.org/job-role": "launcher"}
"""mpi-operator's label since v2beta1, which a user of Katib has to give for both operators."""

JOBS: dict[str, tuple[Framework, Resource, list[tuple[str, int]]]] = {
    "TFJob with a chief": (
        TENSORFLOW,
        tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2, ps=1),
        [("chief", 0)],
    ),
    "TFJob of workers": (TENSORFLOW, tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2), [("worker", 0)]),
    "PyTorchJob": (PYTORCH, pytorchjob(master=1, worker=2), [("master", 0)]),
    "PyTorchJob of workers": (PYTORCH, pytorchjob(worker=2), [("worker", 0), ("worker", 1)]),
    "XGBoostJob": (XGBOOST, xgboostjob(worker=2), [("master", 0)]),
    "MXJob": (MXNET, mxjob().v1().servers(1).workers(2).resource(), [("scheduler", 0)]),
    "PaddleJob of workers": (PADDLE, paddlejob(worker=2), [("worker", 0), ("worker", 1)]),
    "PaddleJob": (PADDLE, paddlejob(master=1, worker=2), [("master", 0)]),
    "JAXJob": (JAX, jaxjob(worker=2), [("worker", 0), ("worker", 1)]),
    "MPIJob": (MPI, mpijob(runPolicy={"backoffLimit": 0}), [("launcher", 0)]),
}
"""Framework, job, and the replicas whose success is the job's."""


def with_policy(job: Resource, policy: str) -> Resource:
    (field,) = (name for name in job["spec"] if name.endswith("ReplicaSpecs"))
    for replica in job["spec"][field].values():
        replica["restartPolicy"] = policy
    return job


def holds(job: Mapping[str, Any], expression: str) -> bool:
    found = gjson.get(job, expression, quiet=True)
    return isinstance(found, dict) or (isinstance(found, list) and bool(found))


def trial(fake_cluster: FakeCluster) -> str:
    """What Katib makes of the job."""
    job = dict(fake_cluster.resource)
    if holds(job, FAILURE):
        return "Failed"
    return "Succeeded" if holds(job, SUCCESS) else "Running"


def played(name: str, policy: str = "Never") -> tuple[FakeCluster, list[tuple[str, int]]]:
    framework, job, deciding = JOBS[name]
    return FakeCluster(with_policy(copy.deepcopy(job), policy), framework), deciding


every_job = pytest.mark.parametrize("name", JOBS)


@every_job
def test_a_job_without_a_status_and_a_new_job_run(name: str) -> None:
    fake_cluster, _ = played(name)
    assert "status" not in fake_cluster.resource or not fake_cluster.resource["status"]
    assert trial(fake_cluster) == "Running"
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Created"
    assert trial(fake_cluster) == "Running"


@every_job
def test_a_running_job_runs(name: str) -> None:
    fake_cluster, _ = played(name)
    fake_cluster.start()
    assert fake_cluster.status["state"] == "Running"
    assert trial(fake_cluster) == "Running"


@every_job
def test_a_job_that_succeeds_has_succeeded(name: str) -> None:
    fake_cluster, deciding = played(name)
    fake_cluster.start()
    for number, (type_, index) in enumerate(deciding):
        assert trial(fake_cluster) == "Running", number
        fake_cluster.exit(type_, index, 0)
        fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"
    assert trial(fake_cluster) == "Succeeded"


@every_job
def test_a_job_that_fails_has_failed(name: str) -> None:
    fake_cluster, deciding = played(name)
    fake_cluster.start()
    fake_cluster.exit(*deciding[0], 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert trial(fake_cluster) == "Failed"


@pytest.mark.parametrize("name", [name for name in JOBS if name != "MPIJob"])
def test_a_job_that_restarts_a_replica_runs(name: str) -> None:
    fake_cluster, deciding = played(name, "ExitCode")
    fake_cluster.start()
    fake_cluster.exit(*deciding[0], 137)
    fake_cluster.step()
    assert ("Restarting", "True") in fake_cluster.conditions
    assert trial(fake_cluster) == "Running"


@every_job
def test_a_suspended_job_runs_and_so_does_a_resumed_one(name: str) -> None:
    fake_cluster, _ = played(name)
    fake_cluster.start()
    fake_cluster.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True))
    fake_cluster.settle()
    assert ("Suspended", "True") in fake_cluster.conditions
    assert trial(fake_cluster) == "Running"
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    fake_cluster.settle()
    assert ("Suspended", "False") in fake_cluster.conditions
    assert trial(fake_cluster) == "Running"


@every_job
def test_the_primary_pod_is_that_of_the_success_target(name: str) -> None:
    """There is exactly one: Katib would collect the metrics of each."""
    fake_cluster, deciding = played(name)
    fake_cluster.start()
    wanted = PRIMARY_OF_MPI if name == "MPIJob" else PRIMARY
    primary = [pod for pod in fake_cluster.pods.values() if wanted.items() <= pod["metadata"]["labels"].items()]
    type_, index = deciding[0]
    assert [pod["metadata"]["name"] for pod in primary] == [fake_cluster.pod(type_, index)["metadata"]["name"]]
