"""Which API flavor a job has, where two versions of a kind have the same fields: MPIJob v1 and v2beta1.

The engine watches a kind in its stored version, so every MPIJob has the apiVersion kubeflow.org/v1 there.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.any_framework import adapt
from ansible_collections.dljob.operator.plugins.module_utils.logic.flavors import flavor_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import MPI, Resource, mpijob, mpijob_v1
from support.fake_cluster import FakeCluster

MARK = {"sshAuthMountPath": "/root/.ssh"}
"""What the API server adds to a job that is created as v2beta1."""


def recorded(version: str, job: Resource) -> Resource:
    return {**job, "status": {"apiVersion": f"kubeflow.org/{version}"}}


@pytest.mark.parametrize(
    ("job", "version"),
    [
        (mpijob_v1(), "v1"),
        (mpijob_v1(**MARK), "v2beta1"),
        # a manifest that no API server has seen, as ansible-playbook in check mode reads it
        (mpijob(), "v2beta1"),
        (mpijob(**MARK), "v2beta1"),
        # Kueue writes every MPIJob as v2beta1, and the API server then marks it
        (recorded("v1", mpijob_v1(**MARK)), "v1"),
        (recorded("v1", mpijob(**MARK)), "v1"),
        # the field was removed
        (recorded("v2beta1", mpijob_v1()), "v2beta1"),
        # whoever may write a status may write anything into it
        (recorded("v3", mpijob_v1()), "v1"),
        ({**mpijob_v1(), "status": {"apiVersion": ["v2beta1"]}}, "v1"),
        ({**mpijob_v1(), "status": "v2beta1"}, "v1"),
        ({**mpijob_v1(**MARK), "status": {"apiVersion": None}}, "v2beta1"),
    ],
)
def test_the_version_in_which_a_job_was_created(job: Resource, version: str) -> None:
    assert flavor_of(job, MPI).version == version
    parsed = parse_job(job, MPI)
    assert parsed.api_version == f"kubeflow.org/{version}", "so the owner references name it"


def test_a_spec_that_is_no_map_names_the_field() -> None:
    with pytest.raises(InvalidJob, match=r"spec\.mpiReplicaSpecs is missing"):
        parse_job({**mpijob_v1(), "spec": ["mpi"]}, MPI)


def test_a_dljob_has_the_newest_flavor_and_its_own_version() -> None:
    (flavor,) = adapt(MPI).flavors
    assert (flavor.version, flavor.marker, flavor.batch_jobs) == ("", {}, ("Launcher",))


@pytest.mark.parametrize(
    ("job", "field", "other", "own"),
    [
        (mpijob_v1(mpiImplementation="Intel"), "mpiImplementation", "v2beta1", "v1"),
        (mpijob_v1(launcherCreationPolicy="AtStartup"), "launcherCreationPolicy", "v2beta1", "v1"),
        (mpijob_v1(runLauncherAsWorker=False), "runLauncherAsWorker", "v2beta1", "v1"),
        (mpijob(mainContainer="worker"), "mainContainer", "v1", "v2beta1"),
    ],
)
def test_a_field_of_the_other_version(job: Resource, field: str, other: str, own: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        parse_job(job, MPI)
    assert refused.value.problems == (
        f"spec.{field} is a field of kubeflow.org/{other}, and the job was created as {own}: remove it, or delete the "
        f"job and create it with the apiVersion kubeflow.org/{other}",
    )


@pytest.mark.parametrize("value", [None, ""])
def test_an_empty_field_of_the_other_version_says_nothing(value: Any) -> None:
    assert parse_job(mpijob_v1(mpiImplementation=value), MPI).flavor.version == "v1"


@pytest.mark.parametrize(("job", "version"), [(mpijob_v1(), "v1"), (mpijob_v1(**MARK), "v2beta1")])
def test_the_first_status_records_the_version(job: Resource, version: str) -> None:
    fake_cluster = FakeCluster(job, MPI)
    fake_cluster.settle()
    assert fake_cluster.status["apiVersion"] == f"kubeflow.org/{version}"


def test_a_write_through_the_other_version_changes_nothing() -> None:
    """The launcher of v1 stays a pod, and no pod is replaced, once Kueue has admitted the job."""
    fake_cluster = FakeCluster(mpijob_v1(runPolicy={"suspend": True}), MPI)
    fake_cluster.settle()
    fake_cluster.edit(lambda spec: spec.update(MARK, runPolicy={"suspend": False}))
    fake_cluster.start()
    assert sorted(fake_cluster.pods) == ["pi-launcher", "pi-worker-0", "pi-worker-1"]
    before = {name: pod["metadata"]["uid"] for name, pod in fake_cluster.pods.items()}
    fake_cluster.edit(lambda spec: spec.pop("sshAuthMountPath"))
    fake_cluster.settle()
    assert {name: pod["metadata"]["uid"] for name, pod in fake_cluster.pods.items()} == before
