"""runPolicy.restartsWithin: which restarts count, for how long, and what follows from one too many."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import restarts_within
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import NONE
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import ReplicaActions
from ansible_collections.dljob.operator.plugins.module_utils.values.restarts_within import RestartsWithin
from support.builders import MPI, MXJob, Pod, at, mpijob, mxjob, pod_of, stamp
from support.fake_cluster import FakeCluster

DAY = 86_400


def limited(policy: str = "ExitCode", workers: int = 2, scope: str = "Replica", **within: Any) -> MXJob:
    job = mxjob().v1().servers(1).workers(workers).restart(policy)
    return job.run_policy(restartsWithin={"count": 1, "seconds": 1000, **within}, restartScope=scope)


def running(job: MXJob) -> FakeCluster:
    cluster = FakeCluster(job)
    cluster.start()
    return cluster


def fail(cluster: FakeCluster, index: int = 1, after: float = 400, code: int = 130) -> None:
    """A worker fails, and ``after`` that time all its followers run again."""
    cluster.exit("worker", index, code)
    cluster.settle()
    cluster.advance(after)
    cluster.settle()
    cluster.kubelet_deletes()
    cluster.settle()
    cluster.run_all()
    cluster.settle()


@pytest.mark.parametrize("scope", ["Replica", "Job"])
@pytest.mark.parametrize("policy", ["OnFailure", "ExitCode"])
@pytest.mark.parametrize(("seconds", "state"), [(1000, "Failed"), (399, "Running"), (400, "Running"), (401, "Failed")])
def test_the_time_between_the_restarts_decides(policy: str, scope: str, seconds: int, state: str) -> None:
    """In place by the kubelet, by a new pod, or of all replicas."""
    cluster = running(limited(policy, seconds=seconds, scope=scope))
    for _ in range(3):
        fail(cluster)
    assert cluster.status["state"] == state
    if state == "Failed":
        assert cluster.status["failure"]["reason"] == "RestartsWithinExceeded"


def test_what_is_said() -> None:
    cluster = running(limited())
    for _ in range(2):
        fail(cluster)
    assert cluster.status["reason"] == (
        "RestartsWithinExceeded: the job's replicas ended 2 times with an error in less than 1000 s: "
        "spec.runPolicy.restartsWithin allows 1 restarts; last: container mxnet of pod digits-worker-1 exited with 130 "
        "(Error)"
    )
    failure = cluster.status["failure"]
    assert (failure["pod"], failure["exitCode"]) == ("digits-worker-1", 130)


def test_all_replicas_together() -> None:
    cluster = running(limited(count=2))
    for index in (0, 1):
        fail(cluster, index)
    assert cluster.status["state"] == "Running"
    fail(cluster, 0)
    assert cluster.status["state"] == "Failed"


def test_a_job_of_weeks_may_fail_once_a_day() -> None:
    cluster = running(limited("OnFailure", seconds=DAY // 2))
    for day in range(30):
        fail(cluster, day % 2, after=DAY)
    assert cluster.status["state"] == "Running"
    assert cluster.status["recentRestarts"] == {"restarts": 30, "times": [stamp(29 * DAY)]}


def test_a_limit_of_0_allows_none() -> None:
    cluster = running(limited(count=0))
    fail(cluster)
    assert cluster.status["failure"]["reason"] == "RestartsWithinExceeded"


@pytest.mark.parametrize("times", [2, 5])
def test_unseen_restarts_count(times: int) -> None:
    cluster = running(limited("OnFailure"))
    for _ in range(times):
        cluster.exit("worker", 0, 1)
        cluster.advance(10)
    cluster.settle()
    assert cluster.status["failure"]["reason"] == "RestartsWithinExceeded"


def test_restarts_while_the_operator_was_down_count_when_they_were() -> None:
    cluster = running(limited("OnFailure"))
    for _ in range(2):
        cluster.exit("worker", 0, 1)
        cluster.advance(DAY)
        cluster.settle()
    assert cluster.status["state"] == "Running"


def test_a_status_that_is_lost_counts_once() -> None:
    cluster = running(limited())
    cluster.exit("worker", 0, 130)
    cluster.step(status_gets_lost=True)
    cluster.advance(5)
    cluster.step()
    assert len(cluster.status["recentRestarts"]["times"]) == 1
    fail(cluster, 0, after=DAY)
    assert cluster.status["state"] == "Running"


def test_consequences_do_not_count() -> None:
    """One loss ends the others too."""
    cluster = running(limited(workers=4))
    cluster.exit("worker", 0, 137)
    for index in range(1, 4):
        cluster.exit("worker", index, 137, seconds=5)
    cluster.advance(10)
    cluster.settle()
    cluster.advance(400)
    cluster.settle()
    assert cluster.status["state"] != "Failed"
    assert len(cluster.status["recentRestarts"]["times"]) == 1


@pytest.mark.parametrize("policy", ["OnFailure", "ExitCode"])
@pytest.mark.parametrize("after", [5, -1])
def test_nor_do_those_of_a_code_that_no_retry_cures(policy: str, after: float) -> None:
    """Also where the loss that they follow from is reported after them."""
    rule = {"action": "Restart", "onExitCodes": {"operator": "In", "values": [1]}}
    rules = {"podFailurePolicy": {"rules": [rule]}} if policy == "ExitCode" else {}
    cluster = running(limited(policy, workers=4).run_policy(**rules))
    first, *others = (0, 1, 2, 3) if after > 0 else (1, 0)
    cluster.exit("worker", first, 1)
    cluster.settle()
    cluster.advance(max(after, 0))
    for index in others:
        cluster.exit("worker", index, 1 if after > 0 else 137, seconds=min(after, 0))
    cluster.settle()
    assert cluster.status["state"] != "Failed"
    assert len(cluster.status["recentRestarts"]["times"]) == 1


def test_what_was_a_consequence_stays_one() -> None:
    cluster = running(limited("OnFailure", workers=4, count=3, seconds=3600))
    cluster.exit("worker", 0, 137)
    cluster.settle()
    cluster.advance(5)
    cluster.exit("worker", 1, 1)
    for index in (2, 3):
        cluster.settle()
        cluster.advance(300)
        cluster.exit("worker", index, 1)
    cluster.settle()
    assert cluster.status["state"] != "Failed"
    assert len(cluster.status["recentRestarts"]["times"]) == 3


def test_pods_that_terminate_after_a_suspension_count_no_more() -> None:
    cluster = running(limited("OnFailure", count=2, seconds=3600))
    for _ in range(2):
        fail(cluster, 0, after=10)
    for suspend in (True, False):
        cluster.edit(lambda spec, suspend=suspend: spec["runPolicy"].update(suspend=suspend))
        cluster.step()
        cluster.step()
    assert cluster.status["recentRestarts"] == {"restarts": 2}
    cluster.kubelet_deletes()
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    cluster.advance(300)  # the deletions explain failures that follow soon
    fail(cluster, 1)
    assert len(cluster.status["recentRestarts"]["times"]) == 1


def test_a_disruption_does_not_count() -> None:
    cluster = running(limited("OnFailure", count=0))
    cluster.evict("worker", 0)
    cluster.settle()
    assert cluster.status["state"] != "Failed" and cluster.status["recentRestarts"] == {"restarts": 0}


@pytest.mark.parametrize("how", ["suspended", "another spec"])
def test_a_job_that_begins_again_has_had_none(how: str) -> None:
    cluster = running(limited())
    fail(cluster)
    assert cluster.status["recentRestarts"]["times"]
    if how == "suspended":
        cluster.edit(lambda spec: spec["runPolicy"].update(suspend=True))
    else:
        cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"]["template"]["spec"].update(nodeName="other"))
    cluster.settle()
    assert "times" not in cluster.status.get("recentRestarts", {})


# --- a launcher


def launcher(**within: Any) -> FakeCluster:
    job = mpijob(worker=1, runPolicy={"backoffLimit": 9, "restartsWithin": {"count": 1, "seconds": 1000, **within}})
    cluster = FakeCluster(job, MPI)
    cluster.start()
    return cluster


@pytest.mark.parametrize(("seconds", "state"), [(1000, "Failed"), (50, "Running")])
def test_restarts_by_a_batch_job_count(seconds: int, state: str) -> None:
    cluster = launcher(seconds=seconds)
    for _ in range(2):
        cluster.exit("launcher", 0, 17)
        cluster.settle()
        cluster.advance(100)
    assert cluster.status["state"] == state
    if state == "Failed":
        assert cluster.status["failure"]["reason"] == "RestartsWithinExceeded"


def test_a_batch_job_that_terminates_after_a_suspension_counts_no_more() -> None:
    cluster = launcher()
    cluster.exit("launcher", 0, 17)
    cluster.settle()
    for suspend in (True, False):
        cluster.edit(lambda spec, suspend=suspend: spec["runPolicy"].update(suspend=suspend))
        for _ in range(4):
            cluster.step()
    assert "times" not in cluster.status["recentRestarts"]


# --- RestartJob


def test_then_all_replicas_restart_and_then_the_job_fails() -> None:
    cluster = running(limited(action="RestartJob"))
    before = {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    fail(cluster)
    fail(cluster)
    assert (cluster.status["state"], cluster.status["attempt"]) == ("Running", 1)
    assert not before & {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    assert cluster.status["retries"] == {"worker-1": 1, "job": 1}
    assert set(cluster.status["recentRestarts"]) == {"restarts", "jobRestarted"}
    (message,) = [event.message for event in cluster.events if "restarts all its replicas" in event.message]
    assert "spec.runPolicy.restartsWithin allows 1 restarts; last: container mxnet" in message
    fail(cluster, after=100)
    fail(cluster, after=100)
    assert cluster.status["failure"]["reason"] == "RestartsWithinExceeded"
    assert "in less than 1000 s, and all had restarted before: spec" in cluster.status["reason"]


def test_all_replicas_restart_again_after_the_time() -> None:
    cluster = running(limited(action="RestartJob"))
    for attempt in (1, 2, 3):
        fail(cluster)
        fail(cluster, after=DAY)
        assert (cluster.status["state"], cluster.status["attempt"]) == ("Running", attempt)


def test_other_limits_count_what_was_before_the_restart_of_all() -> None:
    cluster = running(limited("OnFailure", action="RestartJob").run_policy(backoffLimit=2))
    for _ in range(2):
        fail(cluster)
    assert (cluster.status["attempt"], cluster.status["retries"]) == (1, {"job": 1})


def test_a_limit_that_is_lowered_waits_for_the_next_restart() -> None:
    cluster = running(limited("OnFailure", count=2, action="RestartJob"))
    for _ in range(2):
        fail(cluster, after=100)
    cluster.advance(30 * DAY)
    cluster.edit(lambda spec: spec["runPolicy"]["restartsWithin"].update(count=1))
    cluster.settle()
    assert "attempt" not in cluster.status
    fail(cluster, after=100)
    assert "attempt" not in cluster.status
    fail(cluster, after=100)
    assert cluster.status["attempt"] == 1


def test_a_rule_that_restarts_the_job_is_enough() -> None:
    rule = {"action": "RestartJob", "onExitCodes": {"operator": "In", "values": [3]}}
    job = limited(count=0, action="RestartJob").run_policy(podFailurePolicy={"rules": [rule]})
    cluster = running(job)
    fail(cluster, code=3)
    assert (cluster.status["state"], cluster.status["attempt"], cluster.status["retries"]) == ("Running", 1, {"job": 1})


def test_a_permanent_failure_fails_at_once() -> None:
    cluster = running(limited(action="RestartJob"))
    fail(cluster)
    fail(cluster, code=1)
    assert cluster.status["failure"]["reason"] == "Error"


# --- pure


LIMIT = RestartsWithin(2, 100)
JOB = limited().job()
NOTHING = ReplicaActions((), (), {}, (), None)


def found(pods: list[Pod], recent: Any = None, now: float = 1000, retries: Any = None) -> dict[str, Any]:
    """The field after a reconcile of a job that began at 0."""
    actions = dataclasses.replace(NOTHING, retries=retries or {})
    status = {"specHash": "x", "recentRestarts": {"restarts": 0} if recent is None else recent}
    views = [pod.view() for pod in pods]
    return restarts_within.write(restarts_within.find(views, LIMIT, actions, NONE, status, stamp(0), at(now)))


def worker(index: int = 0, **more: Any) -> Pod:
    return pod_of(JOB, "worker", index, **more)


def test_a_restart_of_unknown_time_counts_as_early_as_it_may_have_been() -> None:
    one = found([worker().restarted(1, times=2, seconds=50)])
    assert one == {"restarts": 2, "times": [stamp(0), stamp(50)]}
    assert found([worker().restarted(1, times=2, seconds=50)], one) == one
    later = found([worker().restarted(1, times=4, seconds=120)], one)
    assert later == {"restarts": 4, "times": [stamp(50), stamp(50), stamp(120)]}


def test_old_restarts_are_forgotten_for_good() -> None:
    pods = [worker(0).restarted(1, times=9, seconds=10), worker(1).restarted(1, seconds=500)]
    kept = found(pods)
    assert kept == {"restarts": 10, "times": [stamp(500)]}
    assert found(pods, kept, now=5000) == kept


@pytest.mark.parametrize("state", [{"waiting": {"reason": "CrashLoopBackOff"}}, {"terminated": {"exitCode": 1}}])
def test_the_end_of_a_container_that_waits_is_that_of_its_next_restart(state: Any) -> None:
    """The restart before was seen too late."""
    waits = worker().restarted(1, times=1, seconds=500)
    one = found([waits.change(lambda made: made["status"]["containerStatuses"][0].update(state=state))])
    assert one == {"restarts": 1, "times": [stamp(0)]}
    assert found([worker().restarted(1, times=2, seconds=500)], one) == {"restarts": 2, "times": [stamp(500)]}


def test_a_clock_that_is_fast_counts_now() -> None:
    assert found([worker().restarted(1, seconds=9999)])["times"] == [stamp(1000)]


def test_an_end_without_a_time_counts_once() -> None:
    pod = worker().restarted(1).change(lambda made: made["status"]["containerStatuses"][0].update(lastState={}))
    one = found([pod])
    assert one == {"restarts": 1, "times": [stamp(0)]}
    other = worker(1).restarted(1, seconds=900)
    assert found([pod, other], one)["times"] == [stamp(900)]


def test_restarts_of_before_the_limit_do_not_count() -> None:
    pods = [worker().restarted(1, times=3, seconds=990)]
    assert found(pods, recent={}, retries={"worker-1": 2}) == {"restarts": 5}


@pytest.mark.parametrize("retries", [{"worker-0": 10**9}, {"worker-0": 10**6, "worker-1": -5}])
def test_no_number_of_restarts_is_too_large(retries: dict[str, int]) -> None:
    assert len(found([], retries=retries)["times"]) == 3


@pytest.mark.parametrize(
    "value",
    [
        "text",
        {"times": "now", "restarts": True},
        {"times": [1, "x", None], "restarts": "many", "consequences": -1, "jobRestarted": 5},
        {"times": {"a": 1}, "restarts": -7},
    ],
)
def test_a_malformed_status_counts_as_nothing(value: Any) -> None:
    assert found([], value) == {"restarts": 0}


def test_the_first_year_is_long_ago() -> None:
    ancient = {"restarts": 1, "times": ["0001-01-01T00:00:00Z"]}
    assert found([worker().restarted(1, times=2, seconds=10)], ancient)["times"] == [stamp(10)]
