"""runPolicy.restartsWithin: which restarts count, for how long, and what follows from one too many."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import restarts_within
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import NONE
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import ReplicaActions
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.restarts_within import Counted
from ansible_collections.dljob.operator.plugins.module_utils.values.restarts_within import RestartsWithin
from support.builders import MXJob, Pod, at, mxjob, pod_of, stamp
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
        "RestartsWithinExceeded: the job's replicas ended 2 times with an error in less than 1000 s, "
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
    assert len(cluster.status["recentRestarts"]["replicas"]) == 1


def test_a_limit_of_0_allows_none() -> None:
    cluster = running(limited(count=0))
    fail(cluster)
    assert cluster.status["failure"]["reason"] == "RestartsWithinExceeded"


@pytest.mark.parametrize("times", [2, 5])
def test_restarts_that_nobody_saw_count(times: int) -> None:
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
    (one,) = cluster.status["recentRestarts"]["replicas"].values()
    assert len(one["times"]) == 1
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
    assert list(cluster.status["recentRestarts"]["replicas"]) == ["worker-0"]


def test_a_disruption_does_not_count() -> None:
    cluster = running(limited("OnFailure", count=0))
    cluster.evict("worker", 0)
    cluster.settle()
    assert cluster.status["state"] != "Failed" and "recentRestarts" not in cluster.status


@pytest.mark.parametrize("how", ["suspended", "another spec"])
def test_a_job_that_begins_again_has_had_none(how: str) -> None:
    cluster = running(limited())
    fail(cluster)
    assert "recentRestarts" in cluster.status
    if how == "suspended":
        cluster.edit(lambda spec: spec["runPolicy"].update(suspend=True))
    else:
        cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"]["template"]["spec"].update(nodeName="other"))
    cluster.settle()
    assert "recentRestarts" not in cluster.status


# --- RestartJob


def test_then_all_replicas_restart_and_then_the_job_fails() -> None:
    cluster = running(limited(action="RestartJob"))
    before = {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    fail(cluster)
    fail(cluster)
    assert (cluster.status["state"], cluster.status["attempt"]) == ("Running", 1)
    assert not before & {pod["metadata"]["uid"] for pod in cluster.pods.values()}
    assert cluster.status["retries"] == {"worker-1": 1, "job": 1}
    assert list(cluster.status["recentRestarts"]) == ["jobRestarted"]
    (message,) = [event.message for event in cluster.events if "restarts all its replicas" in event.message]
    assert "spec.runPolicy.restartsWithin allows 1 restarts; last: container mxnet" in message
    fail(cluster, after=100)
    fail(cluster, after=100)
    assert cluster.status["failure"]["reason"] == "RestartsWithinExceeded"
    assert "in less than 1000 s again after all had restarted, " in cluster.status["reason"]


def test_all_replicas_restart_again_after_the_time() -> None:
    cluster = running(limited(action="RestartJob"))
    for attempt in (1, 2, 3):
        fail(cluster)
        fail(cluster, after=DAY)
        assert (cluster.status["state"], cluster.status["attempt"]) == ("Running", attempt)


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


def found(pods: list[Pod], status: Any, now: float = 1000, launched: Any = None) -> dict[str, Any]:
    views = [pod.view() for pod in pods]
    counted = Counted({}, launched or {}, stamp(0))
    return restarts_within.write(restarts_within.find(views, LIMIT, NOTHING, counted, NONE, status, at(now)))


def worker(index: int = 0, **more: Any) -> Pod:
    return pod_of(JOB, "worker", index, **more)


def test_only_the_last_restart_of_an_unknown_pod_has_a_time() -> None:
    pod = worker().created(950).restarted(1, times=3, seconds=990)
    one = found([pod], {})["replicas"]["worker-0"]
    assert one == {"times": [stamp(950), stamp(950), stamp(990)], "pod": "uid-of-digits-worker-0", "inPlace": 3}
    assert found([pod], {"recentRestarts": {"replicas": {"worker-0": one}}})["replicas"]["worker-0"] == one
    later = worker().created(950).restarted(1, times=5, seconds=999)
    times = found([later], {"recentRestarts": {"replicas": {"worker-0": one}}})["replicas"]["worker-0"]["times"]
    assert times == [stamp(950), stamp(950), stamp(990), stamp(990), stamp(999)]


def test_old_restarts_are_forgotten_for_good() -> None:
    old, new = worker(0).created(0).restarted(1, times=9, seconds=10), worker(1).created(0).restarted(1, seconds=500)
    kept = found([old, new], {})
    assert list(kept["replicas"]) == ["worker-1"]
    assert found([old, new], {"recentRestarts": kept}, now=5000) == kept


def test_a_clock_that_is_fast_counts_now() -> None:
    assert found([worker().created(0).restarted(1, seconds=9999)], {})["replicas"]["worker-0"]["times"] == [stamp(1000)]


def test_the_newest_pod_of_a_replica_counts() -> None:
    old = worker().created(950).restarted(1, times=2, seconds=960).deleting()
    new = worker(attempt=1).created(970).restarted(1, seconds=980)
    for pods in ([old, new], [new, old]):
        assert found(pods, {})["replicas"]["worker-0"]["times"] == [stamp(980)]


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        {"replicas": ["x"]},
        {"replicas": {"worker-0": 1}, "jobRestarted": 5},
        {"replicas": {"worker-0": {"times": "now", "inPlace": True}}},
        {"replicas": {"worker-0": {"times": [1, "x", None], "pod": 3, "inPlace": -1}}},
    ],
)
def test_a_malformed_status_counts_as_nothing(value: Any) -> None:
    assert found([], {"recentRestarts": value}) == {}
