"""Validation of an MPIJob by its CRD, and how the API server tells the jobs of its two versions apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.flavors import flavor_of
from kubernetes import client
from support.builders import MPI, mpijob

from dljob_operator.engine.cache import transforms

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


# --- v1

V1 = {
    "slotsPerWorker": 4,
    "cleanPodPolicy": "Running",
    "mainContainer": "worker",
    "runPolicy": {"suspend": True, "managedBy": "kubeflow.org/training-operator"},
}


def v1(job: Job) -> Job:
    return {**job, "apiVersion": "kubeflow.org/v1"}


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(v1(written()), id="the least"),
        pytest.param(v1(written(**V1)), id="every field"),
        pytest.param(v1(written(0)), id="no worker"),
        pytest.param(v1(changed("Worker", restartPolicy="ExitCode")), id="exit code"),
        pytest.param(v1(changed("Launcher", restartPolicy="Always")), id="always"),
        pytest.param(v1(written(name="p" * 54)), id="the longest name"),
    ],
)
def test_good_in_v1(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(job) == ""


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (v1(without("Launcher")), "exactly one Launcher, with replicas of 1, is required"),
        (v1(changed("Launcher", replicas=2)), "exactly one Launcher, with replicas of 1, is required"),
        (v1(changed("Worker", restartPolicy="Sometimes")), "restartPolicy: Unsupported value"),
        (v1(written(slotsPerWorker=0)), "slotsPerWorker"),
        (v1(written(runPolicy={"managedBy": "me"})), "managedBy: Unsupported value"),
        (v1(written(mainContainers="worker")), 'unknown field \\"spec.mainContainers\\"'),
    ],
)
def test_bad_in_v1(validation_error: Callable[[Job], str], job: Job, message: str) -> None:
    assert message in validation_error(job)


class Stored:
    """A created job, read and changed in any of its versions."""

    def __init__(self, api: client.ApiClient, submit: Callable[..., Job], namespace: str, job: Job) -> None:
        self._objects = client.CustomObjectsApi(api)
        self._where = (namespace, "mpijobs", job["metadata"]["name"])
        submit(job, namespace=namespace)

    def read(self, version: str = "v1") -> Any:
        return self._objects.get_namespaced_custom_object("kubeflow.org", version, *self._where)

    def patch(self, version: str, body: Any) -> None:
        self._objects.patch_namespaced_custom_object("kubeflow.org", version, *self._where, body)

    def patch_status(self, version: str, body: Any) -> None:
        self._objects.patch_namespaced_custom_object_status("kubeflow.org", version, *self._where, body)


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_a_job_shows_in_which_version_it_was_created(
    api: client.ApiClient, submit: Callable[..., Job], namespace: str, version: str
) -> None:
    stored = Stored(api, submit, namespace, {**written(), "apiVersion": f"kubeflow.org/{version}"})
    for read in (stored.read(), transforms.custom(stored.read()), stored.read("v2beta1")):
        assert flavor_of(read, MPI).version == version
    other = {"v1": "v2beta1", "v2beta1": "v1"}[version]
    stored.patch(other, {"spec": {"runPolicy": {"suspend": True}}})
    assert flavor_of(transforms.custom(stored.read()), MPI).version == version, "as the engine reads it"


def test_a_write_through_the_other_version_loses_nothing(
    api: client.ApiClient, submit: Callable[..., Job], namespace: str
) -> None:
    """Kueue admits every MPIJob as v2beta1."""
    job = v1(written(**V1))
    job["spec"]["mpiReplicaSpecs"]["Worker"]["restartPolicy"] = "ExitCode"  # which v2beta1 refuses in a new job
    stored = Stored(api, submit, namespace, job)
    before = stored.read()["spec"]
    stored.patch_status("v1", {"status": {"apiVersion": "kubeflow.org/v1", "phase": "Creating"}})
    stored.patch("v2beta1", {"spec": {"runPolicy": {"suspend": False}}})
    after = stored.read()
    assert after["spec"]["runPolicy"].pop("suspend") is False
    assert before["runPolicy"].pop("suspend") is True
    assert after["spec"] == before
    assert flavor_of(stored.read(), MPI).version == "v1"


def test_the_status_of_a_job_of_v2beta1_can_be_written_through_v1(
    api: client.ApiClient, submit: Callable[..., Job], namespace: str
) -> None:
    """The operator watches and writes the stored version."""
    stored = Stored(api, submit, namespace, written(**EVERYTHING))
    stored.patch_status("v1", {"status": {"apiVersion": "kubeflow.org/v2beta1", "phase": "Running"}})
    assert stored.read("v2beta1")["status"] == {"apiVersion": "kubeflow.org/v2beta1", "phase": "Running"}
    assert stored.read("v2beta1")["spec"].items() >= {"mpiImplementation": "MPICH", "runLauncherAsWorker": True}.items()
