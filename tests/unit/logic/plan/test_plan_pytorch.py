"""The life cycle of PyTorchJobs, by the rules of training-operator."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import SUCCEEDS_BY_ALL
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Fact
from support.builders import PYTORCH, pytorchjob
from support.fake_cluster import FakeCluster


def played(**job: Any) -> FakeCluster:
    fake_cluster = FakeCluster(pytorchjob(**job), PYTORCH)
    fake_cluster.start()
    return fake_cluster


def test_the_masters_exit_decides_the_outcome() -> None:
    fake_cluster = played(master=1, worker=2)
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("master", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"


def test_without_a_master_all_workers_must_succeed() -> None:
    fake_cluster = played(worker=2)
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"


@pytest.mark.parametrize("policy", [{"minReplicas": 1, "maxReplicas": 3}, {"maxRestarts": 100}, {}])
def test_of_elastic_workers_the_first_that_succeeds_is_enough(policy: dict[str, int]) -> None:
    fake_cluster = played(worker=3, elasticPolicy=policy)
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"


@pytest.mark.parametrize("left", [1, 2])
def test_fewer_elastic_workers_presume_that_the_spec_is_current(left: int) -> None:
    """A cache may have an older spec, from before somebody asked for more."""
    fake_cluster = played(worker=3, elasticPolicy={"minReplicas": 1, "maxReplicas": 3})
    fake_cluster.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=left))
    planned = fake_cluster.planned()
    assert [one.name for one in planned.deletions] == [f"example-job-worker-{index}" for index in range(left, 3)]
    assert bool(planned.presumed(Fact.SPEC_IS_CURRENT))
    fake_cluster.carry_out(planned)
    assert not fake_cluster.planned().presumed(Fact.SPEC_IS_CURRENT), "once they terminate"


def test_elastic_workers_that_have_all_failed_fail_the_job_with_the_first_of_them() -> None:
    job = pytorchjob(worker=3, elasticPolicy={"minReplicas": 1})
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "Never"
    fake_cluster = FakeCluster(job, PYTORCH)
    fake_cluster.start()
    for index in (2, 0):
        fake_cluster.exit("worker", index, 1)
        fake_cluster.settle()
        assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("worker", 1, 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["failure"]["pod"] == "example-job-worker-2"


def test_one_elastic_worker_that_runs_is_enough_to_say_so() -> None:
    """The cluster may have no room for more, and the training has begun."""
    fake_cluster = FakeCluster(pytorchjob(worker=3, elasticPolicy={"minReplicas": 1}), PYTORCH)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Created"
    fake_cluster.run("worker", 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"


def test_a_policy_that_is_no_map_is_named() -> None:
    with pytest.raises(InvalidJob, match=r"spec\.elasticPolicy must be a map, not True"):
        parse_job(pytorchjob(worker=2, elasticPolicy=True), PYTORCH)


def test_elastic_workers_cannot_restart_together() -> None:
    job = pytorchjob(worker=2, elasticPolicy={"maxReplicas": 3}, runPolicy={"restartScope": "Job"})
    with pytest.raises(
        InvalidJob, match=r"spec\.runPolicy\.restartScope is Job, but the replicas of Worker are elastic"
    ):
        parse_job(job, PYTORCH)


def test_elastic_workers_beside_a_master_decide_nothing() -> None:
    policy = {"minReplicas": 1}
    assert parse_job(pytorchjob(master=1, worker=2, elasticPolicy=policy), PYTORCH).succeeds_by == SUCCEEDS_BY_ALL
    fake_cluster = played(master=1, worker=2, elasticPolicy=policy)
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"


@pytest.mark.parametrize(("elastic", "anew"), [({"minReplicas": 1, "maxReplicas": 9}, False), ({}, True), (None, True)])
def test_a_worker_more(elastic: dict[str, int] | None, anew: bool) -> None:
    fake_cluster = played(worker=2, **({} if elastic is None else {"elasticPolicy": elastic}))
    before = {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}
    fake_cluster.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=3))
    fake_cluster.settle()
    after = {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}
    assert len(after) == 3
    assert (before <= after) is not anew


def test_a_worker_that_an_elastic_job_no_longer_has_decides_nothing() -> None:
    fake_cluster = played(worker=3, elasticPolicy={"minReplicas": 1, "maxReplicas": 3})
    fake_cluster.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=2))
    fake_cluster.exit("worker", 2, 0)
    fake_cluster.settle()
    assert (fake_cluster.status["state"], fake_cluster.replicas()) == ("Running", ["worker-0", "worker-1"])


def test_the_eviction_of_an_elastic_worker_that_has_completed_is_not_reported() -> None:
    """A sidecar kept its pod running."""
    job = pytorchjob(master=1, worker=2, elasticPolicy={"minReplicas": 1})
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = "Never"
    fake_cluster = FakeCluster(job, PYTORCH)
    fake_cluster.start()
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.pod("worker", 1)["status"]["phase"] = "Running"
    fake_cluster.settle()
    fake_cluster.evict("worker", 1)
    fake_cluster.settle()
    assert (fake_cluster.status["state"], fake_cluster.status.get("reason", "")) == ("Running", "")


def test_an_elastic_job_that_shrank_runs_new_workers_when_it_grows() -> None:
    fake_cluster = played(master=1, worker=4, elasticPolicy={"minReplicas": 1, "maxReplicas": 4})
    for index in (2, 3):
        fake_cluster.exit("worker", index, 0)
    fake_cluster.settle()
    assert (fake_cluster.status["completed"], fake_cluster.status["replicas"]) == ({"worker": "2-3"}, "5/5")
    fake_cluster.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=2))
    fake_cluster.settle()
    assert ("completed" in fake_cluster.status, fake_cluster.status["replicas"]) == (False, "3/3")
    fake_cluster.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=4))
    fake_cluster.settle()
    assert len(fake_cluster.pods) == 5
