"""A success target that only coordinates has exited with 0: the others have time to end before the job succeeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import settling
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.clean_pod_policy import GRACE_PERIOD
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from support.builders import (
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    MXJob,
    Pod,
    Resource,
    at,
    mxjob,
    observed,
    paddlejob,
    pod_of,
    pytorchjob,
    tfjob,
)
from support.fake_cluster import FakeCluster

NEVER = mxjob().v1().servers(1).workers(2).restart("Never")


def job(policy: str = "Never", **run_policy: Any) -> MXJob:
    made = mxjob().v1().servers(1).workers(2).replicas("TunerTracker", 1).restart(policy)
    return made.run_policy(**run_policy) if run_policy else made


def remaining(made: MXJob, others: list[Pod], now: float = 0, scheduler: Pod | None = None) -> float | None:
    """``now`` is in seconds since the end of the scheduler."""
    read = made.job()
    seen = observed(read, [scheduler or pod_of(read, "scheduler").succeeded(), *others])
    return settling.remaining(read, MXNET, seen, seen, at(now))


def fails(made: MXJob, other: Pod, now: float) -> bool:
    read = made.job()
    seen = observed(read, [pod_of(read, "scheduler").succeeded(), other])
    return settling.fails(read, MXNET, seen, seen, at(now))


IGNORE = {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]}
FAIL_JOB = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}


@pytest.mark.parametrize("type_", ["worker", "tuner"])
@pytest.mark.parametrize(("now", "left"), [(0, 10), (9.5, 0.5), (10, None), (500, None), (-1, 11), (-10, None)])
def test_the_time_counts_from_the_end_of_the_scheduler(type_: str, now: float, left: float | None) -> None:
    """A clock that is far behind or ahead of the kubelet's costs nothing."""
    assert GRACE_PERIOD == 10
    made = mxjob().v1().workers(1).replicas("Tuner", 1).restart("Never")
    assert remaining(made, [pod_of(made.job(), type_).running()], now) == left


@pytest.mark.parametrize(
    ("policy", "run_policy", "waits"),
    [
        ("Never", {}, True),
        ("ExitCode", {}, True),
        ("OnFailure", {}, False),  # its failure is not fatal
        ("Always", {}, False),  # nor does it ever end
        ("OnFailure", {"podFailurePolicy": IGNORE}, False),
        ("OnFailure", {"podFailurePolicy": FAIL_JOB}, True),
        ("Never", {"restartScope": "Job"}, True),
        ("OnFailure", {"restartScope": "Job"}, False),
    ],
)
def test_only_replicas_whose_failure_fails_the_job_are_waited_for(
    policy: str, run_policy: Mapping[str, Any], waits: bool
) -> None:
    made = job(policy, **run_policy)
    assert (remaining(made, [pod_of(made.job(), "worker").running()]) is not None) is waits


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda j: pod_of(j, "worker").succeeded(), id="ended"),
        pytest.param(lambda j: pod_of(j, "worker").failed(137), id="failed"),
        pytest.param(lambda j: pod_of(j, "worker").exited(0), id="a sidecar runs on"),
        pytest.param(lambda j: pod_of(j, "worker"), id="has not begun"),
        pytest.param(lambda j: pod_of(j, "worker").running().deleting(), id="is being deleted"),
        pytest.param(lambda j: pod_of(j, "server").running(), id="has no result of its own"),
        pytest.param(lambda j: pod_of(j, "tunertracker").running(), id="runs until something stops it"),
    ],
)
def test_not_for_one_that(other: Any) -> None:
    assert remaining(job(), [other(job().job())]) is None


def test_not_in_a_list_layout() -> None:
    """There a worker fails no job, and is restarted whatever its exit code."""
    for made in (mxjob().v1alpha1(), mxjob().fioravanzo(), mxjob().mpba()):
        never = made.workers(1).restart("Never")
        assert remaining(never, [pod_of(never.job(), "worker").running()]) is None


def test_not_for_a_scheduler_whose_pod_is_gone() -> None:
    made = job()
    seen = observed(made.job(), [pod_of(made.job(), "worker").running()])
    assert settling.remaining(made.job(), MXNET, seen, seen, at(0)) is None
    assert not settling.fails(made.job(), MXNET, seen, seen, at(0))


@pytest.mark.parametrize(
    ("policy", "code", "seconds", "now", "found"),
    [
        ("Never", 1, 0, 0, True),
        ("Never", 1, 0, 1000, True),  # whenever the operator sees it
        ("Never", 137, 10, 1000, True),
        ("Never", 1, 11, 1000, False),
        ("Never", 0, 1, 1, False),
        ("ExitCode", 1, 1, 1, True),
        ("ExitCode", 137, 1, 1, False),  # a restart would help, and the job is over
        ("OnFailure", 1, 1, 1, False),
    ],
)
def test_a_failure_for_good_within_the_time_fails_the_job(
    policy: str, code: int, seconds: float, now: float, found: bool
) -> None:
    made = job(policy)
    assert fails(made, pod_of(made.job(), "worker").failed(code, seconds=seconds), now) is found


@pytest.mark.parametrize(
    ("other", "now", "found"),
    [
        pytest.param(lambda j: pod_of(j, "tunertracker").failed(1, seconds=1), 1, False, id="long-running"),
        pytest.param(lambda j: pod_of(j, "server").failed(255, seconds=1), 1, False, id="a server as it shuts down"),
        pytest.param(lambda j: pod_of(j, "worker").refused_by_node("Evicted"), 9, True, id="evicted in time"),
        pytest.param(lambda j: pod_of(j, "worker").refused_by_node("Evicted"), 10, False, id="evicted, seen later"),
        pytest.param(lambda j: pod_of(j, "worker").running().disrupted().deleting(), 9, True, id="drained in time"),
        pytest.param(lambda j: pod_of(j, "worker").running().disrupted().deleting(), 10, False, id="drained later"),
        pytest.param(lambda j: pod_of(j, "worker").running().deleting(), 1, False, id="deleted by a user"),
    ],
)
def test_ends_without_an_exit_code(other: Any, now: float, found: bool) -> None:
    assert fails(job(), other(job().job()), now) is found


@pytest.mark.parametrize(
    ("resource", "framework", "target", "waits"),
    [
        pytest.param(paddlejob(1, 1), PADDLE, "master", True, id="paddle, a parameter server"),
        pytest.param(paddlejob(0, 2), PADDLE, "worker", False, id="paddle, workers only"),
        pytest.param(pytorchjob(1, 1), PYTORCH, "master", False, id="pytorch, the master computes"),
        pytest.param(
            tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1), TENSORFLOW, "chief", False, id="tensorflow"
        ),
    ],
)
def test_other_frameworks(resource: Resource, framework: Any, target: str, waits: bool) -> None:
    (entries,) = (one for name, one in resource["spec"].items() if name.endswith("ReplicaSpecs"))
    for entry in entries.values():
        entry["restartPolicy"] = "Never"
    read = parse_job(resource, framework)
    pods = [
        pod_of(read, target, framework=framework).succeeded(),
        pod_of(read, "worker", read.group("Worker").replicas - 1, framework=framework).running(),  # type: ignore[union-attr]
    ]
    seen = Observed(tuple(pod.view() for pod in pods))
    assert (settling.remaining(read, framework, seen, seen, at(0)) is not None) is waits


# --- the plan


def ending(made: MXJob = NEVER) -> FakeCluster:
    """The scheduler has exited with 0, and the servers; the workers run."""
    fake_cluster = FakeCluster(made)
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.exit("server", 0, 0)
    return fake_cluster


def test_the_status_says_what_the_job_waits_for_and_is_written_once() -> None:
    fake_cluster = ending()
    done = fake_cluster.step()
    assert done.requeue_after == GRACE_PERIOD
    status = fake_cluster.status
    assert (status["state"], status["phase"]) == ("Running", "Running")
    assert status["reason"] == (
        "the Scheduler has exited with 0: waiting up to 10 s for the replicas that compute, whose failure would still count"
    )
    fake_cluster.advance(4)
    again = fake_cluster.step()
    assert (again.status, again.requeue_after) == (None, 6)


def test_it_succeeds_as_soon_as_the_last_worker_has_ended() -> None:
    fake_cluster = ending()
    fake_cluster.step()
    fake_cluster.advance(2)
    for index in (0, 1):
        fake_cluster.exit("worker", index, 0)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Succeeded"
    assert fake_cluster.status["reason"] == ""
    assert fake_cluster.status["completionTime"] == "2026-01-02T12:00:02Z"


def test_it_succeeds_once_the_time_is_over() -> None:
    fake_cluster = ending()
    fake_cluster.step()
    fake_cluster.advance(GRACE_PERIOD)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Succeeded"


def test_a_worker_that_fails_at_its_end_fails_the_job() -> None:
    fake_cluster = ending()
    fake_cluster.step()
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.exit("worker", 1, 28)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["failure"]["pod"] == "digits-worker-1"
    assert fake_cluster.status["failure"]["exitCode"] == 28


def test_also_where_both_ends_are_seen_at_once() -> None:
    fake_cluster = ending()
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.exit("worker", 1, 28)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Failed"


@pytest.mark.parametrize("scope", ["Replica", "Job"])
def test_a_retryable_failure_restarts_nothing(scope: str) -> None:
    made = mxjob().v1().servers(1).workers(2).restart("ExitCode").run_policy(restartScope=scope)
    fake_cluster = ending(made)
    fake_cluster.step()
    fake_cluster.exit("worker", 0, 137)
    done = fake_cluster.step()
    assert not (done.pods or done.deletions or done.delete_job)
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"
    assert "retries" not in fake_cluster.status


def test_a_deadline_that_passes_meanwhile_does_not_count() -> None:
    made = mxjob().v1().servers(1).workers(2).restart("Never").run_policy(activeDeadlineSeconds=5)
    fake_cluster = ending(made)
    fake_cluster.step()
    fake_cluster.advance(6)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.advance(4)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Succeeded"


def test_a_suspension_meanwhile_comes_first() -> None:
    """As one just before the end of the scheduler does: the job has not succeeded yet."""
    fake_cluster = ending()
    fake_cluster.step()
    fake_cluster.edit(lambda spec: spec.setdefault("runPolicy", {}).update(suspend=True))
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Suspended"
    assert "completed" not in fake_cluster.status
