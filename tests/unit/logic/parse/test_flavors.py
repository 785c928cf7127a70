"""Which API flavor a job has, where two versions of a kind have the same fields: MPIJob v1 and v2beta1.

The engine watches a kind in its stored version, so every MPIJob has the apiVersion kubeflow.org/v1 there.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.any_framework import adapt
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.flavors import errors_of_versions, flavor_of
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import MPI, TENSORFLOW, Resource, echo_framework, mpijob, mpijob_v1, tfjob
from support.fake_cluster import FakeCluster

from dljob_operator.engine.cache import transforms


def noted(job: Resource, *versions: str) -> Resource:
    """The job with the API server's notes: the first version is that of its creator, the others of later patches."""
    entries: list[Resource] = [
        {
            "manager": f"manager-{number}",
            "operation": "Update",
            "apiVersion": f"kubeflow.org/{version}",
            "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:spec": {"f:runPolicy": {"f:suspend": {}}, **({} if number else {"f:mpiReplicaSpecs": {}})}},
        }
        for number, version in enumerate(versions)
    ]
    # by the operator, as the API server lists them: not in the order of their time
    status = {
        "apiVersion": "kubeflow.org/v1",
        "subresource": "status",
        "fieldsV1": {"f:status": {"f:a": {}} | {f"f:{n}": {} for n in range(99)}},
    }
    return {**job, "metadata": {**job["metadata"], "managedFields": [status, *reversed(entries)]}}


def recorded(version: str, job: Resource) -> Resource:
    return {**job, "status": {"apiVersion": f"kubeflow.org/{version}"}}


@pytest.mark.parametrize(
    ("job", "version"),
    [
        (noted(mpijob_v1(), "v1"), "v1"),
        (noted(mpijob_v1(), "v2beta1"), "v2beta1"),
        # Kueue writes every MPIJob as v2beta1
        (noted(mpijob_v1(), "v1", "v2beta1"), "v1"),
        (noted(mpijob(), "v1", "v2beta1"), "v1"),
        (noted(mpijob_v1(), "v2beta1", "v1"), "v2beta1"),
        # a manifest that no API server has seen, as ansible-playbook in check mode reads it
        (mpijob_v1(), "v1"),
        (mpijob(), "v2beta1"),
        # an engine's cache keeps the version only, and only where it is another one than the object's
        (transforms.custom(noted(mpijob_v1(), "v2beta1", "v1")), "v2beta1"),
        (transforms.custom(noted(mpijob_v1(), "v1", "v2beta1")), "v1"),
        # what the status records comes first: the user may have applied another version since
        (recorded("v1", noted(mpijob_v1(), "v2beta1")), "v1"),
        (recorded("v2beta1", noted(mpijob_v1(), "v1")), "v2beta1"),
        # a tenant who may write a job may write anything into these
        (recorded("v3", mpijob_v1()), "v1"),
        ({**mpijob_v1(), "status": {"apiVersion": ["v2beta1"]}}, "v1"),
        ({**mpijob_v1(), "status": "v2beta1"}, "v1"),
        (noted(mpijob_v1(), "v3"), "v1"),
        ({**mpijob_v1(), "metadata": {**mpijob_v1()["metadata"], "managedFields": [1, {"apiVersion": 7}]}}, "v1"),
        ({**mpijob_v1(), "metadata": {**mpijob_v1()["metadata"], "managedFields": {"a": 1}}}, "v1"),
    ],
)
def test_the_version_in_which_a_job_was_created(job: Resource, version: str) -> None:
    assert flavor_of(job, MPI).version == version
    parsed = parse_job(job, MPI)
    assert parsed.api_version == f"kubeflow.org/{version}", "so the owner references name it"


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"replicaSpecs": []}, "v1alpha1"),
        ({"tfReplicaSpecs": {}}, "v1"),
        # the newest one, so that errors name its field
        ({}, "v1"),
        (None, "v1"),
        (["replicaSpecs"], "v1"),
        ("replicaSpecs", "v1"),
    ],
)
@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
def test_the_field_of_the_replicas_tells_the_flavor_whatever_the_version(spec: Any, status: str, version: str) -> None:
    job = {**tfjob(f"kubeflow.org/{version}"), "spec": spec}
    assert flavor_of(job, TENSORFLOW).status == status


def test_the_fields_of_two_flavors() -> None:
    job = {**tfjob("kubeflow.org/v1"), "spec": {"tfReplicaSpecs": {}, "replicaSpecs": []}}
    with pytest.raises(InvalidJob, match="spec has replicaSpecs and tfReplicaSpecs, which are spellings of one field"):
        flavor_of(job, TENSORFLOW)


def test_the_cache_of_an_engine_keeps_no_more_than_the_version() -> None:
    assert "managedFields" not in transforms.custom(noted(mpijob_v1(), "v1"))["metadata"]
    kept = transforms.custom(noted(mpijob_v1(), "v2beta1"))["metadata"]["managedFields"]
    assert kept == [{"apiVersion": "kubeflow.org/v2beta1"}]


def test_a_spec_that_is_no_map_names_the_field() -> None:
    with pytest.raises(InvalidJob, match=r"spec\.mpiReplicaSpecs is missing"):
        parse_job({**mpijob_v1(), "spec": ["mpi"]}, MPI)


def test_a_dljob_has_the_newest_flavor_and_its_own_version() -> None:
    (flavor,) = adapt(MPI).flavors
    assert (flavor.version, flavor.batch_jobs) == ("", ("Launcher",))


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


def test_only_other_versions_of_the_same_kind_have_fields_of_another_version() -> None:
    layout: dict[str, Any] = {"replicas_layout": "map", "replicas_fields": ["replicaSpecs"]}
    groups, field = ["example.com", "example.net"], {"type": "string"}
    framework = echo_framework(
        flavors=[
            {"groups": groups, "version": "v1", "fields": {"a": field}, **layout},
            {"groups": groups, "version": "v2", "fields": {"b": field}, **layout},
            {"groups": groups, "fields": {"c": field}, **layout, "replicas_fields": ["replicas"]},
            {"groups": ["example.org"], "version": "v3", "fields": {"d": field}, **layout},
        ]
    )
    errors = list(errors_of_versions(dict.fromkeys("abcd", "x"), framework.flavors[0], framework))
    assert [error.partition(",")[0] for error in errors] == ["spec.b is a field of example.com/v2"]


@pytest.mark.parametrize("value", [None, ""])
def test_an_empty_field_of_the_other_version_says_nothing(value: Any) -> None:
    assert parse_job(mpijob_v1(mpiImplementation=value), MPI).flavor.version == "v1"


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_the_first_status_records_the_version(version: str) -> None:
    fake_cluster = FakeCluster(noted(mpijob_v1(), version), MPI)
    fake_cluster.settle()
    assert fake_cluster.status["apiVersion"] == f"kubeflow.org/{version}"


def test_a_job_of_another_version_afterwards_changes_nothing() -> None:
    """The launcher of v1 stays a pod, and no pod is replaced."""
    fake_cluster = FakeCluster(noted(mpijob_v1(runPolicy={"suspend": True}), "v1"), MPI)
    fake_cluster.settle()
    fake_cluster.edit(lambda spec: spec.update(runPolicy={"suspend": False}))
    fake_cluster.start()
    assert sorted(fake_cluster.pods) == ["pi-launcher", "pi-worker-0", "pi-worker-1"]
    before = {name: pod["metadata"]["uid"] for name, pod in fake_cluster.pods.items()}
    fake_cluster.resource["metadata"]["managedFields"] = noted(mpijob_v1(), "v2beta1")["metadata"]["managedFields"]
    fake_cluster.settle()
    assert {name: pod["metadata"]["uid"] for name, pod in fake_cluster.pods.items()} == before
