"""A pod that takes long to terminate, as that of a dead node, which stays; the job says so."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import termination
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from support.builders import PYTORCH, UID, at, mxjob, pod_of, pytorchjob
from support.fake_cluster import FakeCluster, is_quiet

from dljob_operator.engine.cache import transforms


def with_a_dead_node(*workers: int) -> FakeCluster:
    """Running, and then these workers are deleted on a node that never reports it. Their grace period has 30 s."""
    cluster = FakeCluster(mxjob("digits").v1().workers(2))
    cluster.start()
    for index in workers:
        cluster.pod("worker", index)["spec"]["nodeName"] = "n1"
        cluster.user_deletes(f"digits-worker-{index}")
    return cluster


def test_the_status_and_an_event_say_so_once() -> None:
    cluster = with_a_dead_node(1)
    cluster.step()
    assert cluster.status["reason"] == ""
    assert cluster.planned().requeue_after == 5
    cluster.advance(60)
    cluster.step()
    reason = cluster.status["reason"]
    assert reason.startswith("pod digits-worker-1 should have terminated at 2026-01-02T12:00:30Z on node n1")
    assert "kubectl delete pod digits-worker-1 --force" in reason
    assert [event.reason for event in cluster.events].count("PodNotTerminated") == 1
    cluster.advance(3600)
    later = cluster.planned()
    assert (later.status, later.events, later.requeue_after) == (None, (), None), "and nothing more is written"


@pytest.mark.parametrize(
    ("phase", "grace", "is_named"),
    [
        ("Running", 30, False),  # its node may be gone
        ("Running", 0, True),  # its node has ended it
        ("Succeeded", 30, True),
        ("Failed", 30, True),
    ],
)
def test_a_pod_that_somebodys_finalizer_keeps(phase: str, grace: int, is_named: bool) -> None:
    cluster = with_a_dead_node(1)
    pod = cluster.pod("worker", 1)
    pod["metadata"] |= {"finalizers": ["kueue.x-k8s.io/managed"], "deletionGracePeriodSeconds": grace}
    pod["status"]["phase"] = phase
    cluster.advance(60)
    cluster.step()
    assert ("finalizers to remove them: kueue.x-k8s.io/managed" in cluster.status["reason"]) == is_named
    assert ("--force" in cluster.status["reason"]) != is_named


EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}


def evict_by_taint(cluster: FakeCluster, index: int, ready: str = "False", **changes: str) -> None:
    """The worker's node has a taint. Of a lost one Kubernetes has marked the pods as not ready before."""
    pod = cluster.pod("worker", index)
    pod["spec"]["nodeName"] = "n1"
    pod["status"]["conditions"] = [EVICTED | changes, {"type": "Ready", "status": ready}]
    cluster.user_deletes(f"digits-worker-{index}")


def test_a_lost_node_is_reported_immediately_and_once() -> None:
    cluster = FakeCluster(mxjob("digits").v1().workers(3).restart("OnFailure"))
    cluster.start()
    written = 0
    for index in (1, 0, 2):  # the pods that Kubernetes evicts one after the other
        evict_by_taint(cluster, index)
        before = cluster.status.get("reason")
        cluster.step()
        written += cluster.status["reason"] != before
    reason = cluster.status["reason"]
    assert reason.startswith("node n1 is probably lost: ")
    assert f"--field-selector spec.nodeName=n1 -l dljob.operator/job-uid={UID} --force" in reason
    for seconds in (5, 25, 30, 3600):
        cluster.advance(seconds)
        assert is_quiet(cluster.step()), "nor the time of another reason changes it"
    assert (written, [event.reason for event in cluster.events].count("PodNotTerminated")) == (1, 1)
    cluster.kubelet_deletes()
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    assert (cluster.status["reason"], len(cluster.pods)) == ("", 4)


@pytest.mark.parametrize(
    ("ready", "changes"),
    [
        pytest.param("True", {}, id="a taint of a healthy node"),
        pytest.param("False", {"reason": "EvictionByEvictionAPI"}, id="a drain"),
        pytest.param("False", {"status": "False"}, id="an eviction that was cancelled"),
        pytest.param("False", {"type": "Other"}, id="another condition"),
    ],
)
def test_a_pod_of_a_healthy_node_is_not_reported_as_lost(ready: str, changes: dict[str, str]) -> None:
    cluster = FakeCluster(mxjob("digits").v1().workers(2).restart("OnFailure"))
    cluster.start()
    evict_by_taint(cluster, 1, ready, **changes)
    cluster.step()
    assert (cluster.status["reason"], cluster.planned().requeue_after) == ("", 5)


def test_neither_is_a_pod_whose_containers_have_ended() -> None:
    """Its node has reported that."""
    cluster = FakeCluster(mxjob("digits").v1().workers(2).restart("Never"))
    cluster.start()
    evict_by_taint(cluster, 1)
    cluster.pod("worker", 1)["status"] |= {"phase": "Failed"}
    cluster.step()
    assert "probably lost" not in cluster.status["reason"]


def test_several() -> None:
    cluster = with_a_dead_node(0, 1)
    cluster.advance(60)
    cluster.step()
    assert "digits-worker-0 and 1 more should" in cluster.status["reason"]


WAITS = "waiting until Pod/digits-worker-1, which terminates, is gone"


@pytest.mark.parametrize(("seconds", "reason"), [(0, ""), (4, ""), (5, WAITS), (59, WAITS)])
def test_a_pod_that_terminates_in_time_is_mentioned_once_it_takes_long(seconds: float, reason: str) -> None:
    cluster = with_a_dead_node(1)
    cluster.advance(seconds)
    cluster.step()
    assert cluster.status["reason"] == reason
    assert is_quiet(cluster.planned()), "and the same is not written again"
    assert "PodNotTerminated" not in [event.reason for event in cluster.events]


@pytest.mark.parametrize(("seconds", "check"), [(0, 5), (4.5, 0.5), (5, 55), (59.5, 0.5), (60, None), (3600, None)])
def test_the_next_check(seconds: float, check: float | None) -> None:
    """The job waits for it after 5 s. Its grace period ends after 30 s, and it has 30 s more."""
    job = mxjob("digits").v1().workers(2).job()
    pods = [pod_of(job, "worker", 0).running().view(), pod_of(job, "worker", 1).running().deleting().view()]
    assert termination.next_check(pods, pods[1:], at(seconds)) == check
    assert termination.next_check(pods, [], at(seconds)) == (None if seconds >= 60 else 60 - seconds)
    assert (termination.stuck(pods, at(seconds)) == "") == (check is not None)


def test_the_engines_cache_keeps_what_this_needs() -> None:
    job = mxjob("digits").v1().workers(1).job()
    pod = pod_of(job, "worker", 0).running().deleting().resource()
    pod["metadata"]["finalizers"] = ["somebody/waits"]
    cached = transforms.owned(OWNED_KINDS["Pod"].cached or {})(pod)
    seen, known = (build_observed_state(Owner("default", job.uid), "mxnet", [one], []).pods for one in (pod, cached))
    assert seen == known
    assert (seen[0].terminating, seen[0].grace_period) == ("2026-01-02T12:00:30Z", 30)
    assert seen[0].finalizers == ("somebody/waits",)


RULE = {"action": "RestartJob", "onPodConditions": [{"type": "DisruptionTarget"}]}


@pytest.mark.parametrize("policy", [{"restartScope": "Job"}, {"podFailurePolicy": {"rules": [RULE]}}])
def test_a_job_that_restarts_as_a_whole_waits_for_all_its_pods_and_writes_few_statuses(policy: dict[str, Any]) -> None:
    cluster = FakeCluster(mxjob("digits").v1().workers(3).restart("OnFailure").run_policy(**policy))
    cluster.start()
    cluster.evict("worker", 1)
    for _ in range(3):
        cluster.step()
    cluster.advance(5)
    cluster.step()
    assert cluster.status["reason"] == "waiting until Pod/digits-scheduler-0 and 2 more, which terminate, are gone"
    del cluster.pods["digits-worker-2"]
    assert is_quiet(cluster.planned()), "the pod that the reason names is still there"
    del cluster.pods["digits-scheduler-0"]
    cluster.step()
    assert cluster.status["reason"] == "waiting until Pod/digits-worker-0, which terminates, is gone"
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    assert (cluster.status["reason"], cluster.status["phase"]) == ("", "Running")


def test_another_reason_precedes_it() -> None:
    cluster = with_a_dead_node(1)
    waiting = {"reason": "ErrImagePull", "message": "no such image"}
    cluster.pod("worker", 0)["status"]["containerStatuses"][0]["state"] = {"waiting": waiting}
    cluster.advance(5)
    cluster.step()
    assert cluster.status["reason"] == "digits-worker-0: ErrImagePull: no such image"


def test_nobody_waits_for_the_pod_of_a_replica_that_the_job_no_longer_has() -> None:
    cluster = FakeCluster(pytorchjob(worker=2, elasticPolicy={"minReplicas": 1, "maxReplicas": 2}), PYTORCH)
    cluster.start()
    cluster.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=1))
    cluster.step()
    cluster.advance(5)
    cluster.step()
    deleting = [name for name, pod in cluster.pods.items() if pod["metadata"].get("deletionTimestamp")]
    assert (deleting, cluster.status["reason"]) == (["example-job-worker-1"], "")


def test_once_it_is_gone_the_replica_gets_a_new_pod_and_the_reason_goes() -> None:
    cluster = with_a_dead_node(1)
    cluster.advance(60)
    cluster.step()
    cluster.kubelet_deletes()
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    assert (cluster.status["reason"], len(cluster.pods)) == ("", 3)
