"""The life cycle of XGBoostJobs, by the rules of training-operator."""

from __future__ import annotations

import re

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import XGBOOST, Resource, xgboostjob
from support.fake_cluster import FakeCluster


def played(job: Resource) -> FakeCluster:
    fake_cluster = FakeCluster(job, XGBOOST)
    fake_cluster.start()
    return fake_cluster


def with_policy(policy: str) -> Resource:
    job = xgboostjob(worker=2)
    for replica in job["spec"]["xgbReplicaSpecs"].values():
        replica["restartPolicy"] = policy
    return job


def test_the_masters_exit_decides_the_outcome() -> None:
    fake_cluster = played(xgboostjob(worker=2))
    for index in (0, 1):
        fake_cluster.exit("worker", index, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("master", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"


def test_a_worker_that_fails_fails_the_job() -> None:
    fake_cluster = played(xgboostjob(worker=2))
    fake_cluster.exit("worker", 1, 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["failure"]["pod"] == "example-job-worker-1"


@pytest.mark.parametrize("policy", ["Never", "ExitCode"])
def test_the_masters_success_wins_over_a_workers_failure(policy: str) -> None:
    """training-operator reports whichever type it happens to look at last."""
    fake_cluster = played(with_policy(policy))
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.exit("master", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"


def test_a_retryable_exit_code_is_tried_again() -> None:
    fake_cluster = played(with_policy("ExitCode"))
    fake_cluster.exit("worker", 0, 137)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Restarting"
    assert fake_cluster.status["retries"] == {"worker-0": 1}


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (xgboostjob(master=0, worker=1), "the job has 0 Master replicas: it needs exactly 1 Master"),
        (xgboostjob(master=2, worker=1), "spec.xgbReplicaSpecs.Master.replicas is 2: a job has exactly 1 Master"),
    ],
)
def test_exactly_one_master(job: Resource, said: str) -> None:
    with pytest.raises(InvalidJob, match=re.escape(said)):
        parse_job(job, XGBOOST)
