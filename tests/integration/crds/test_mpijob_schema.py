"""Validation of an MPIJob by its CRD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.builders import mpijob

Job = dict[str, Any]


def written(worker: int | None = 2, name: str = "pi", **spec: Any) -> Job:
    """An MPIJob as a user writes it."""
    job = mpijob(worker, name, **spec)
    job["metadata"] = {"name": name}
    return job


def changed(type_: str, **fields: Any) -> Job:
    """With fields of one replica spec."""
    job = written()
    job["spec"]["mpiReplicaSpecs"][type_] |= fields
    return job


def without(type_: str) -> Job:
    job = written()
    del job["spec"]["mpiReplicaSpecs"][type_]
    return job


EVERYTHING = {
    "slotsPerWorker": 4,
    "runLauncherAsWorker": True,
    "sshAuthMountPath": "/home/mpiuser/.ssh",
    "launcherCreationPolicy": "WaitForWorkersReady",
    "mpiImplementation": "MPICH",
    "runPolicy": {
        "cleanPodPolicy": "Running",
        "ttlSecondsAfterFinished": 60,
        "activeDeadlineSeconds": 600,
        "backoffLimit": 3,
        "suspend": False,
        "managedBy": "kubeflow.org/mpi-operator",
        "schedulingPolicy": {"minAvailable": 3, "queue": "q"},
    },
}


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(written(), id="the least"),
        pytest.param(written(**EVERYTHING), id="every field"),
        pytest.param(written(None, runLauncherAsWorker=True), id="without workers"),
        pytest.param(changed("Launcher", replicas=1, restartPolicy="Never"), id="restart policy"),
        pytest.param(written(name="p" * 54), id="the longest name"),
    ],
)
def test_good(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (without("Launcher"), "exactly one Launcher, with replicas of 1, is required"),
        (changed("Launcher", replicas=2), "exactly one Launcher, with replicas of 1, is required"),
        (written(0), "Worker has no replica: set its replicas to at least 1, or remove the entry"),
        (changed("Worker", restartPolicy="ExitCode"), "restartPolicy: Unsupported value"),
        (changed("Launcher", restartPolicy="Always"), "restartPolicy: Unsupported value"),
        (changed("Worker", template={"spec": {"containers": []}}), "add the container that runs the training"),
        (written(slotsPerWorker=0), "slotsPerWorker"),
        (written(sshAuthMountPath="ssh"), "sshAuthMountPath must be an absolute path without a colon"),
        (written(sshAuthMountPath="/etc/mpi/"), "the hostfile is mounted at /etc/mpi"),
        (written(launcherCreationPolicy="Later"), "launcherCreationPolicy: Unsupported value"),
        (written(mpiImplementation="openmpi"), "mpiImplementation: Unsupported value"),
        (written(runPolicy={"managedBy": "kubeflow.org/training-operator"}), "managedBy: Unsupported value"),
        (written(name="p" * 55), "has 55 characters, and may have at most 54"),
    ],
)
def test_bad(validation_error: Callable[[Job], str], job: Job, message: str) -> None:
    assert message in validation_error(job)
