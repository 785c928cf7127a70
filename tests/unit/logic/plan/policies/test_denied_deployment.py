"""A Deployment of a job whose pods the API server denies is in the job's reason, and the training goes on."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import denied_deployment
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed, OwnedObject
from support.builders import TENSORFLOW, Resource, tfjob
from support.fake_cluster import FakeCluster, is_quiet

QUOTA = 'pods "tensorboard-zbq4-5f9c-x7k2p" is forbidden: exceeded quota: one, requested: pods=1'
WITHOUT_NAME = "its pods are forbidden: exceeded quota: one, requested: pods=1"


@pytest.mark.parametrize(
    ("denied", "reason"),
    [
        ({}, ""),
        ({"a": ""}, ""),
        ({"a": QUOTA}, f"Deployment a: {WITHOUT_NAME}"),
        ({"b": "second", "a": "first"}, "Deployment a: first"),
        ({"a": "", "b": QUOTA}, f"Deployment b: {WITHOUT_NAME}"),
    ],
)
def test_the_reason(denied: dict[str, str], reason: str) -> None:
    found = {("Deployment", name): OwnedObject("uid", denied=text) for name, text in denied.items()}
    assert denied_deployment.reason(Observed(owned_objects=found)) == reason


def with_tensorboard() -> tuple[FakeCluster, Resource]:
    resource = tfjob(master=1)
    resource["spec"]["tensorboard"] = {"logDir": "/logs", "volumes": [], "volumeMounts": []}
    cluster = FakeCluster(resource, TENSORFLOW)
    cluster.start()
    (deployment,) = cluster.others["Deployment"].values()
    return cluster, deployment


def condition(status: str, type_: str = "ReplicaFailure") -> Resource:
    return {"conditions": [{"type": type_, "status": status, "message": QUOTA}]}


def test_a_denial_is_a_reason_with_one_event_until_it_is_over() -> None:
    cluster, deployment = with_tensorboard()
    deployment["status"] = condition("True")
    (first, *others) = cluster.settle()
    assert (cluster.status["state"], cluster.status["phase"]) == ("Running", "Running")
    assert cluster.status["reason"] == f"Deployment {deployment['metadata']['name']}: {WITHOUT_NAME}"
    assert [(event.type, event.reason) for event in first.events] == [("Warning", "FailedPage")]
    assert not any(plan.events for plan in others)
    assert is_quiet(cluster.planned())
    deployment["status"] = condition("False")
    cluster.settle()
    assert cluster.status["reason"] == ""


@pytest.mark.parametrize("status", [{}, condition("False"), condition("True", "Progressing")])
def test_other_conditions_say_nothing(status: Resource) -> None:
    cluster, deployment = with_tensorboard()
    deployment["status"] = status
    assert is_quiet(cluster.planned())


def test_the_end_of_the_job_does_not_wait_for_it() -> None:
    cluster, deployment = with_tensorboard()
    deployment["status"] = condition("True")
    cluster.settle()
    cluster.exit("master", 0, 0)
    cluster.settle()
    assert (cluster.status["state"], cluster.status["reason"]) == ("Succeeded", "")
