"""How often replicas were restarted: the last failure of a job that ends is followed by no restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import end_order
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.restart_counts import made
from support.builders import PYTORCH, XGBOOST, Pod, mxjob, pod_of, pytorchjob, xgboostjob
from support.fake_cluster import FakeCluster

IGNORED = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}
MADE = mxjob().v1().workers(2).restart("ExitCode", "Worker")
JOB = MADE.run_policy(podFailurePolicy={"rules": [IGNORED]}).job()


def worker(attempt: int, index: int = 0) -> Pod:
    return pod_of(JOB, "worker", index, attempt=attempt)


@pytest.mark.parametrize(
    ("pods", "counts", "ignored", "left"),
    [
        pytest.param([], {}, {}, ({}, {}), id="no failure"),
        pytest.param([worker(0).failed(1)], {"worker-0": 1}, {}, ({}, {}), id="the only failure"),
        pytest.param([worker(2).failed(1)], {"worker-0": 3}, {}, ({"worker-0": 2}, {}), id="the last failure"),
        pytest.param([worker(2).running()], {"worker-0": 2}, {}, ({"worker-0": 2}, {}), id="it runs again"),
        pytest.param(
            [worker(1).failed(1).deleting()], {"worker-0": 2}, {}, ({"worker-0": 1}, {}), id="its pod terminates"
        ),
        pytest.param(
            [worker(1).failed(1), worker(2).running()], {"worker-0": 2}, {}, ({"worker-0": 2}, {}), id="a newer pod"
        ),
        pytest.param([], {"worker-0": 2}, {}, ({"worker-0": 2}, {}), id="without a pod"),
        pytest.param(
            [worker(1).failed(1)], {"worker-0": 1}, {"worker-0": 1}, ({}, {"worker-0": 1}), id="the last is counted"
        ),
        pytest.param(
            [worker(1).failed(3)], {"worker-0": 1}, {"worker-0": 1}, ({"worker-0": 1}, {}), id="the last is ignored"
        ),
        pytest.param(
            [worker(0, 1).running()],
            {"worker-0": 2, "job": 1},
            {"worker-2": 1},
            ({"worker-0": 2, "job": 1}, {"worker-2": 1}),
            id="of others",
        ),
    ],
)
def test_failures_that_no_restart_followed(
    pods: list[Pod], counts: Mapping[str, int], ignored: Mapping[str, int], left: Any
) -> None:
    assert made(JOB, [pod.view() for pod in pods], counts, ignored) == left


@pytest.mark.parametrize("policy", ["Never", "ExitCode"])
@pytest.mark.parametrize(
    "job", [pytorchjob(master=1, worker=1), xgboostjob(master=1, worker=1)], ids=["PyTorchJob", "XGBoostJob"]
)
def test_a_permanent_failure_is_no_restart(job: Any, policy: str) -> None:
    field = "pytorchReplicaSpecs" if job["kind"] == "PyTorchJob" else "xgbReplicaSpecs"
    job["spec"][field]["Worker"]["restartPolicy"] = policy
    framework = PYTORCH if job["kind"] == "PyTorchJob" else XGBOOST
    fake_cluster = FakeCluster(job, framework)
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert "retries" not in fake_cluster.status


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_job_out_of_retries_has_as_many_as_it_may(limit: int) -> None:
    fake_cluster = FakeCluster(mxjob().v1().workers(1).restart("ExitCode", "Worker").run_policy(backoffLimit=limit))
    fake_cluster.start()
    for _ in range(limit + 1):
        fake_cluster.exit("worker", 0, 200)
        fake_cluster.advance(10)
        fake_cluster.settle()
        fake_cluster.run_all()
        fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded"
    assert fake_cluster.status.get("retries") == ({"worker-0": limit} if limit else None)


@pytest.mark.parametrize("limit", [0, 2])
def test_a_job_that_restarts_as_a_whole_likewise(limit: int) -> None:
    made = mxjob().v1().workers(2).restart("OnFailure", "Worker")
    fake_cluster = FakeCluster(made.run_policy(backoffLimit=limit, restartScope="Job"))
    fake_cluster.start()
    for _ in range(limit + 1):
        fake_cluster.exit("worker", 0, 1)
        for _ in range(3):
            fake_cluster.advance(10)
            fake_cluster.settle()
            fake_cluster.run_all()
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded"
    assert fake_cluster.status.get("retries") == ({"job": limit} if limit else None)
    assert fake_cluster.status.get("attempt", 0) == limit


def test_a_replica_that_waits_for_its_restart_when_the_job_ends_was_not_restarted() -> None:
    fake_cluster = FakeCluster(MADE.run_policy(podFailurePolicy=None))
    fake_cluster.start()
    fake_cluster.exit("worker", 1, 200)
    fake_cluster.step()
    assert fake_cluster.status["retries"] == {"worker-1": 1}
    fake_cluster.exit("worker", 0, 1, seconds=-end_order.REPORT_LAG)  # not because of the other one
    fake_cluster.settle()
    assert (fake_cluster.status["state"], "retries" in fake_cluster.status) == ("Failed", False)


def test_a_counted_failure_of_a_running_job_counts_before_the_restart() -> None:
    """The limits and the attempt of the next pod follow it, whatever fails in between."""
    fake_cluster = FakeCluster(MADE.run_policy(podFailurePolicy=None))
    fake_cluster.start()
    fake_cluster.exit("worker", 1, 200)
    for _ in range(3):
        fake_cluster.step()
    assert fake_cluster.status["retries"] == {"worker-1": 1}
    fake_cluster.advance(2)
    fake_cluster.settle()
    assert (fake_cluster.attempt("worker", 1), fake_cluster.status["retries"]) == (1, {"worker-1": 1})
