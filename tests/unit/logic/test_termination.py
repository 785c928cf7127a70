"""A pod of a dead node stays terminating; the job says so."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies import termination
from support.builders import at, mxjob, pod_of
from support.fake_cluster import FakeCluster


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
    assert cluster.planned().requeue_after == 60
    cluster.advance(60)
    cluster.step()
    reason = cluster.status["reason"]
    assert reason.startswith("pod digits-worker-1 should have terminated at 2026-01-02T12:00:30Z on node n1")
    assert "kubectl delete pod digits-worker-1 --force" in reason
    assert [event.reason for event in cluster.events].count("PodNotTerminated") == 1
    cluster.advance(3600)
    later = cluster.planned()
    assert (later.status, later.events, later.requeue_after) == (None, (), None), "and nothing more is written"


def test_several() -> None:
    cluster = with_a_dead_node(0, 1)
    cluster.advance(60)
    cluster.step()
    assert "digits-worker-0 and 1 more should" in cluster.status["reason"]


@pytest.mark.parametrize("seconds", [0, 59])
def test_a_pod_that_terminates_in_time_is_not_mentioned(seconds: float) -> None:
    cluster = with_a_dead_node(1)
    cluster.advance(seconds)
    cluster.step()
    assert cluster.status["reason"] == ""


@pytest.mark.parametrize(("seconds", "check"), [(0, 60), (59.5, 0.5), (60, None), (3600, None)])
def test_the_next_check(seconds: float, check: float | None) -> None:
    """Its grace period ends after 30 s, and it has 30 s more."""
    job = mxjob("digits").v1().workers(2).job()
    pods = [pod_of(job, "worker", 0).running().view(), pod_of(job, "worker", 1).running().deleting().view()]
    assert termination.next_check(pods, at(seconds)) == check
    assert (termination.stuck(pods, at(seconds)) == "") == (check is not None)


def test_once_it_is_gone_the_replica_gets_a_new_pod_and_the_reason_goes() -> None:
    cluster = with_a_dead_node(1)
    cluster.advance(60)
    cluster.step()
    cluster.kubelet_deletes()
    cluster.settle()
    cluster.run_all()
    cluster.settle()
    assert (cluster.status["reason"], len(cluster.pods)) == ("", 3)
