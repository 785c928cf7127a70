"""Whether a job has one Service or one a replica, and that it keeps what its pods were created with."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import service_scope
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, OwnedObject
from support.builders import MPI, MXNET, TENSORFLOW, mpijob, mpijob_v1, mxjob, pod_of, tfjob

ANNOTATION = "dljob.operator/services"
JOB, REPLICA = "per-job", "per-replica"


def job(annotation: Any = None, operator: str = JOB) -> DLJob:
    resource = mxjob().v1().workers(1).resource()
    if annotation is not None:
        resource["metadata"]["annotations"] = {ANNOTATION: annotation}
    return parse_job(resource, dataclasses.replace(MXNET, services=operator))


@pytest.mark.parametrize(
    ("annotation", "operator", "expected"),
    [(None, JOB, JOB), (None, REPLICA, REPLICA), (JOB, REPLICA, JOB), (REPLICA, JOB, REPLICA)],
)
def test_the_annotation_overrides_the_operators_setting(annotation: str | None, operator: str, expected: str) -> None:
    assert service_scope.settled(job(annotation, operator), Observed()).services == expected


@pytest.mark.parametrize("value", ["", "Per-Replica", "replica", True])
def test_another_value_is_an_error(value: Any) -> None:
    with pytest.raises(InvalidJob) as caught:
        job(value)
    assert caught.value.problems == (
        f"metadata.annotations: {ANNOTATION} is {value!r}: it must be per-job or per-replica, or absent for the "
        "operator's setting",
    )


@pytest.mark.parametrize("resource", [mpijob(), mpijob_v1()], ids=["v2beta1", "v1"])
@pytest.mark.parametrize("annotation", [None, REPLICA])
def test_an_mpijob_has_one_service_as_in_mpi_operator(resource: dict[str, Any], annotation: str | None) -> None:
    if annotation:
        resource = {**resource, "metadata": {**resource["metadata"], "annotations": {ANNOTATION: annotation}}}
    parsed = parse_job(resource, dataclasses.replace(MPI, services=REPLICA))
    assert service_scope.settled(parsed, Observed()).services == JOB


def state(pods: list[str], services: list[str]) -> Observed:
    """Pods and Services, each with the scope with which it was created, "" for one of the scope per-job."""
    view = pod_of(job(), "Worker").view()
    return Observed(
        pods=tuple(dataclasses.replace(view, uid=str(n), services=one) for n, one in enumerate(pods)),
        services={str(n): str(n) for n in range(len(services))},
        owned_objects={("Service", str(n)): OwnedObject(str(n), services=one) for n, one in enumerate(services)},
    )


@pytest.mark.parametrize(
    ("annotation", "operator", "pods", "services", "expected"),
    [
        # the operator's setting changes: a job keeps its own
        (None, REPLICA, [""], ["", ""], JOB),
        (None, REPLICA, [], [""], JOB),
        (None, JOB, [REPLICA], [REPLICA], REPLICA),
        (None, JOB, [], [REPLICA, ""], REPLICA),
        # somebody has deleted all Services
        (None, JOB, [REPLICA], [], REPLICA),
        (None, REPLICA, [""], [], JOB),
        # a user asks for them while the job runs, and changes the mind: as long as a pod uses the names, they stay
        (REPLICA, JOB, [""], [""], REPLICA),
        (JOB, JOB, ["", REPLICA], [REPLICA], REPLICA),
        (None, JOB, ["", REPLICA], [REPLICA], REPLICA),
        (None, JOB, ["", ""], [REPLICA], JOB),
        (JOB, JOB, [], [REPLICA], JOB),
        (JOB, REPLICA, [REPLICA], [REPLICA], REPLICA),
    ],
)
def test_a_job_keeps_what_its_pods_were_created_with(
    annotation: str | None, operator: str, pods: list[str], services: list[str], expected: str
) -> None:
    assert service_scope.settled(job(annotation, operator), state(pods, services)).services == expected


@pytest.mark.parametrize("annotation", [None, REPLICA])
@pytest.mark.parametrize("status", [{}, {"state": "Running"}], ids=["new", "begun"])
def test_the_longer_names_must_fit_into_a_variable_unless_the_job_has_begun_without_them(
    annotation: str | None, status: dict[str, Any]
) -> None:
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=4000)
    assert parse_job(resource, TENSORFLOW)
    resource["status"] = status
    if annotation:
        resource["metadata"]["annotations"] = {ANNOTATION: annotation}
    framework = dataclasses.replace(TENSORFLOW, services=REPLICA)
    if status and not annotation:
        assert parse_job(resource, framework)
        return
    with pytest.raises(InvalidJob, match="TF_CONFIG"):
        parse_job(resource, framework)
