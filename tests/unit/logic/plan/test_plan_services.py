"""The life of a job with one Service a replica, and of one without them beside it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import spec_hashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanSettings
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.plan import plan
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from support.builders import MXNET, NOW, PYTORCH, TENSORFLOW, mxjob, pytorchjob, tfjob
from support.fake_cluster import FakeCluster

ANNOTATION = "dljob.operator/services"
TF = ("kubeflow.org/v1", "tfReplicaSpecs")
ALL = ["example-job-ps-0", "example-job-worker-0", "example-job-worker-1"]


def annotated(resource: dict[str, Any], scope: str = "per-replica") -> dict[str, Any]:
    resource["metadata"]["annotations"] = {ANNOTATION: scope}
    return resource


def replica_services(cluster: FakeCluster) -> list[str]:
    return sorted(name for name in cluster.services if name.startswith("example-job-"))


def running(scope: str = "per-replica") -> FakeCluster:
    cluster = FakeCluster(annotated(tfjob(*TF, ps=1, worker=2), scope), TENSORFLOW)
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    return cluster


def test_one_service_a_replica_and_one_for_all() -> None:
    cluster = running()
    assert replica_services(cluster) == ALL
    assert len(cluster.services) == 4
    done = cluster.step()
    assert (done.services, done.pods, done.deletions, done.status) == ((), (), (), None), "nothing is left to do"


def test_a_deleted_service_comes_back() -> None:
    cluster = running()
    for names in (["example-job-worker-1"], list(cluster.services)):
        for name in names:
            del cluster.services[name]
        cluster.settle()
        assert replica_services(cluster) == ALL


def test_neither_scope_replaces_a_pod() -> None:
    resource = tfjob(*TF, ps=1, worker=2)
    plain = spec_hashes(parse_job(resource, TENSORFLOW))
    assert spec_hashes(parse_job(annotated(resource), TENSORFLOW)) == plain
    cluster = running("per-job")
    assert replica_services(cluster) == ["example-job-worker-0"]
    before = {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()}
    cluster.resource["metadata"]["annotations"][ANNOTATION] = "per-replica"
    cluster.settle()
    assert replica_services(cluster) == ALL
    assert {name: pod["metadata"]["uid"] for name, pod in cluster.pods.items()} == before


def test_services_stay_while_a_pod_has_their_names() -> None:
    cluster = running()
    cluster.resource["metadata"].pop("annotations")
    cluster.settle()
    assert replica_services(cluster) == ALL


def test_a_smaller_elastic_job_loses_those_of_its_former_replicas() -> None:
    policy = {"minReplicas": 1, "maxReplicas": 3}
    cluster = FakeCluster(annotated(pytorchjob(0, 3, elasticPolicy=policy)), PYTORCH)
    cluster.settle()
    assert replica_services(cluster) == [f"example-job-worker-{n}" for n in range(3)]
    cluster.resource["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 1
    cluster.settle()
    assert replica_services(cluster) == ["example-job-worker-0"]
    cluster.resource["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 2
    cluster.settle()
    assert replica_services(cluster) == ["example-job-worker-0", "example-job-worker-1"]


def test_a_suspended_job_has_none_and_keeps_its_scope() -> None:
    cluster = running()
    cluster.resource["spec"]["runPolicy"] = {"suspend": True}
    cluster.settle()
    assert (replica_services(cluster), cluster.pods, len(cluster.services)) == ([], {}, 1)
    cluster.resource["spec"]["runPolicy"] = {"suspend": False}
    cluster.resource["metadata"].pop("annotations")
    cluster.settle()
    assert replica_services(cluster) == ALL


def test_a_suspended_job_without_them_keeps_its_services() -> None:
    cluster = running("per-job")
    cluster.resource["spec"]["runPolicy"] = {"suspend": True}
    cluster.settle()
    assert (cluster.pods, len(cluster.services)) == ({}, 2)


@pytest.mark.parametrize(("policy", "left"), [("None", 4), ("Running", 0), ("All", 0)])
def test_they_go_with_the_cleanup(policy: str, left: int) -> None:
    resource = annotated(tfjob(*TF, ps=1, worker=2))
    resource["spec"]["runPolicy"] = {"cleanPodPolicy": policy}
    cluster = FakeCluster(resource, TENSORFLOW)
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    cluster.exit("worker", 0, 0)
    cluster.settle()
    assert len(cluster.services) == left


def test_a_template_cannot_claim_the_names() -> None:
    job = mxjob().v1().workers(1).template_metadata("Worker", annotations={ANNOTATION: "per-replica"})
    cluster = FakeCluster(job.resource(), MXNET)
    cluster.settle()
    assert all(ANNOTATION not in pod["metadata"]["annotations"] for pod in cluster.pods.values())
    assert len(cluster.services) == 2


def test_a_large_job_is_created_in_slices() -> None:
    resource = annotated(tfjob(*TF, worker=25))
    cluster = FakeCluster(resource, TENSORFLOW)
    job = parse_job(resource, TENSORFLOW)
    first = plan(job, TENSORFLOW, Observed(), NOW, PlanSettings(largest_slice=10))
    assert (len(first.pods), len(first.services), first.is_partial) == (10, 12, True)
    names = {one["metadata"]["name"] for one in first.services}
    assert {pod["metadata"]["name"] for pod in first.pods} <= names
    cluster.settle()
    assert len(cluster.services) == 26
