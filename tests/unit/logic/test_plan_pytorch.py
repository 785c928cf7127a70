"""PyTorchJobs from their pods to their end, by the rules of the peer."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import SUCCEEDS_BY_ALL
from support.builders import PYTORCH, pytorchjob
from support.fake_cluster import World


def played(**job: Any) -> World:
    world = World(pytorchjob(**job), PYTORCH)
    world.start()
    return world


def test_the_masters_end_is_the_jobs() -> None:
    world = played(master=1, worker=2)
    world.exit("worker", 0, 0)
    world.settle()
    assert world.status["state"] == "Running"
    world.exit("master", 0, 0)
    world.settle()
    assert world.status["state"] == "Succeeded"


def test_without_a_master_all_workers_must_succeed() -> None:
    world = played(worker=2)
    world.exit("worker", 0, 0)
    world.settle()
    assert world.status["state"] == "Running"
    world.exit("worker", 1, 0)
    world.settle()
    assert world.status["state"] == "Succeeded"


@pytest.mark.parametrize("policy", [{"minReplicas": 1, "maxReplicas": 3}, {"maxRestarts": 100}, {}])
def test_of_elastic_workers_the_first_that_succeeds_is_enough(policy: dict[str, int]) -> None:
    world = played(worker=3, elasticPolicy=policy)
    world.exit("worker", 1, 0)
    world.settle()
    assert world.status["state"] == "Succeeded"


def test_one_elastic_worker_that_runs_is_enough_to_say_so() -> None:
    """The cluster may have no room for more, and the training has begun."""
    world = World(pytorchjob(worker=3, elasticPolicy={"minReplicas": 1}), PYTORCH)
    world.settle()
    assert world.status["state"] == "Created"
    world.run("worker", 1)
    world.settle()
    assert world.status["state"] == "Running"


def test_a_policy_that_is_no_map_is_named() -> None:
    with pytest.raises(InvalidJob, match=r"spec\.elasticPolicy must be a map, not True"):
        parse_job(pytorchjob(worker=2, elasticPolicy=True), PYTORCH)


def test_elastic_workers_do_not_begin_anew_as_one() -> None:
    job = pytorchjob(worker=2, elasticPolicy={"maxReplicas": 3}, runPolicy={"restartScope": "Job"})
    with pytest.raises(
        InvalidJob, match=r"spec\.runPolicy\.restartScope is Job, but the replicas of Worker are elastic"
    ):
        parse_job(job, PYTORCH)


def test_elastic_workers_beside_a_master_decide_nothing() -> None:
    policy = {"minReplicas": 1}
    assert parse_job(pytorchjob(master=1, worker=2, elasticPolicy=policy), PYTORCH).succeeds_by == SUCCEEDS_BY_ALL
    world = played(master=1, worker=2, elasticPolicy=policy)
    world.exit("worker", 1, 0)
    world.settle()
    assert world.status["state"] == "Running"


@pytest.mark.parametrize(("elastic", "anew"), [({"minReplicas": 1, "maxReplicas": 9}, False), ({}, True), (None, True)])
def test_a_worker_more(elastic: dict[str, int] | None, anew: bool) -> None:
    world = played(worker=2, **({} if elastic is None else {"elasticPolicy": elastic}))
    before = {pod["metadata"]["uid"] for pod in world.pods.values()}
    world.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=3))
    world.settle()
    after = {pod["metadata"]["uid"] for pod in world.pods.values()}
    assert len(after) == 3
    assert (before <= after) is not anew
