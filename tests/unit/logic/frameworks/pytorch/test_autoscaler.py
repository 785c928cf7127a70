"""The HorizontalPodAutoscaler of a PyTorchJob with elasticPolicy.metrics, from the job's start to its end."""

from __future__ import annotations

from typing import Any

import pytest
from support.builders import PYTORCH, grouped, pytorchjob
from support.fake_cluster import FakeCluster

METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
KEY = ("HorizontalPodAutoscaler", "example-job")


def elastic(policy: dict[str, Any], **spec: Any) -> FakeCluster:
    return FakeCluster(pytorchjob(worker=2, elasticPolicy={"metrics": [METRIC], **policy}, **spec), PYTORCH)


def owned(cluster: FakeCluster) -> list[str]:
    """The names of the autoscalers."""
    return list(cluster.others.get(KEY[0], {}))


def suspend(cluster: FakeCluster, suspended: bool) -> None:
    cluster.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=suspended))
    cluster.settle()


@pytest.mark.parametrize(
    ("policy", "least", "most"),
    [
        ({"minReplicas": 1, "maxReplicas": 5}, 1, 5),
        ({"maxReplicas": 5}, 5, 5),
        ({"minReplicas": 2}, 2, 2),
        ({}, 2, 2),
    ],
)
def test_it_scales_the_job_between_the_bounds_of_training_operator(
    policy: dict[str, int], least: int, most: int
) -> None:
    (made,) = elastic(policy).planned().auxiliary_objects
    assert (made["apiVersion"], made["kind"], made["metadata"]["name"]) == ("autoscaling/v2", *KEY)
    assert made["spec"] == {
        "scaleTargetRef": {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "example-job"},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": [METRIC],
    }


@pytest.mark.parametrize("policy", [{"minReplicas": 1}, {"minReplicas": 1, "metrics": []}])
def test_a_job_without_metrics_has_none(policy: dict[str, Any]) -> None:
    cluster = FakeCluster(pytorchjob(worker=2, elasticPolicy=policy), PYTORCH)
    assert cluster.planned().auxiliary_objects == ()


@pytest.mark.parametrize("clean", ["None", "Running", "All"])
def test_a_finished_job_is_scaled_no_more(clean: str) -> None:
    """Also with a policy that keeps everything else."""
    cluster = elastic({"minReplicas": 1}, runPolicy={"cleanPodPolicy": clean})
    cluster.start()
    assert owned(cluster) == [KEY[1]]
    cluster.exit("worker", 0, 0)
    cluster.exit("worker", 1, 0)
    cluster.settle()
    assert cluster.status["state"] == "Succeeded"
    assert owned(cluster) == []


@pytest.mark.parametrize("clean", ["None", "Running", "All"])
@pytest.mark.parametrize("ttl", [{}, {"ttlSecondsAfterFinished": 600}])
def test_the_reconcile_that_ends_the_job_triggers_the_deletion(clean: str, ttl: dict[str, int]) -> None:
    """No event of a pod may follow."""
    cluster = elastic({"minReplicas": 2}, runPolicy={"cleanPodPolicy": clean, **ttl})
    cluster.start()
    cluster.exit("worker", 0, 0)
    cluster.exit("worker", 1, 0)
    assert cluster.step().requeue_after == 0
    assert (cluster.status["state"], owned(cluster)) == ("Succeeded", [KEY[1]])
    cluster.step()
    assert owned(cluster) == []


def test_a_suspended_job_is_not_scaled_until_it_is_resumed() -> None:
    cluster = elastic({"minReplicas": 1})
    cluster.start()
    suspend(cluster, True)
    assert owned(cluster) == []
    suspend(cluster, False)
    assert owned(cluster) == [KEY[1]]


@pytest.mark.parametrize(("least", "expected"), [(1, 3), (4, 4)])
def test_it_keeps_the_workers_of_the_groups(least: int, expected: int) -> None:
    """With fewer workers the job would be invalid, and the API server refuse the autoscaler's write."""
    job = pytorchjob(worker=4, elasticPolicy={"metrics": [METRIC], "minReplicas": least, "maxReplicas": 5})
    cluster = FakeCluster(grouped(job, "Worker", large=(1, {}), small=(2, {})), PYTORCH)
    (made,) = cluster.planned().auxiliary_objects
    assert (made["spec"]["minReplicas"], made["spec"]["maxReplicas"]) == (expected, 5)
