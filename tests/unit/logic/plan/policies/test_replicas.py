"""Every replica has exactly one pod."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import spec_hashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import (
    Progress,
    ReplicaActions,
    next_actions,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from support.builders import Pod, at, mxjob, observed, pod_of, pods_of
from support.fake_cluster import FakeCluster

JOB = mxjob().v1alpha1().servers(1).workers(2).restart("Never").job()
EVERYONE = ["scheduler-0", "server-0", "worker-0", "worker-1"]


def actions(
    *pods: Pod,
    job: DLJob = JOB,
    retries: Mapping[str, int] | None = None,
    completed: Mapping[str, set[int]] | None = None,
    now: float = 100,
    ignored: Mapping[str, int] | None = None,
) -> ReplicaActions:
    progress = Progress(spec_hashes(job), retries or {}, completed or {}, ignored=ignored or {})
    return next_actions(job, observed(job, pods), progress, at(now))


def started(done: ReplicaActions) -> list[str]:
    return [f"{s.group.type.lower()}-{s.index}" for s in done.starts]


def others(*without: str) -> list[Pod]:
    """Running pods of all replicas but these."""
    return [p.running() for p in pods_of(JOB) if f"{p.view().type}-{p.view().index}" not in without]


def test_without_pods_all_are_created() -> None:
    done = actions()
    assert started(done) == EVERYONE
    assert (done.deletions, done.restarted, done.retries, done.wait) == ((), (), {}, None)


def test_nothing_to_do() -> None:
    done = actions(*others())
    assert (done.starts, done.deletions, done.restarted, done.wait) == ((), (), (), None)


def test_one_is_missing() -> None:
    assert started(actions(*others("worker-1"))) == ["worker-1"]


def test_a_new_pod_of_a_replica_that_failed_before_is_a_new_attempt() -> None:
    (start,) = actions(*others("worker-1"), retries={"worker-1": 3}).starts
    assert start.attempt == 3
    (start,) = actions(*others("worker-1"), retries={"worker-1": 3}, ignored={"worker-1": 2}).starts
    assert start.attempt == 5


def test_a_replica_that_is_done_needs_no_pod() -> None:
    assert started(actions(*others("worker-1"), completed={"worker": {1}})) == []


def test_while_the_old_pod_terminates_there_is_no_new_one() -> None:
    done = actions(*others("worker-1"), pod_of(JOB, "worker", 1).running().deleting())
    assert (done.starts, done.deletions) == ((), ())


def test_a_failed_pod_is_counted_then_waited_for_then_deleted() -> None:
    dead = pod_of(JOB, "worker", 1, attempt=2).failed(1, seconds=100)
    counted = actions(*others("worker-1"), dead, retries={"worker-1": 2})
    assert (counted.retries, counted.deletions, counted.wait) == ({"worker-1": 3}, (), 4)
    assert [p.index for p in counted.restarted] == [1]

    waiting = actions(*others("worker-1"), dead, retries=counted.retries, now=103)
    assert (waiting.retries, waiting.deletions, waiting.restarted, waiting.wait) == ({"worker-1": 3}, (), (), 1)

    deleted = actions(*others("worker-1"), dead, retries=counted.retries, now=104)
    assert [d.uid for d in deleted.deletions] == [dead.view().uid]
    assert (deleted.retries, deleted.restarted, deleted.starts, deleted.wait) == ({"worker-1": 3}, (), (), None)


@pytest.mark.parametrize("retries", [{}, {"worker-1": 2}])
def test_a_disrupted_pod_goes_at_once_and_is_not_counted(retries: dict[str, int]) -> None:
    gone = pod_of(JOB, "worker", 1, attempt=retries.get("worker-1", 0)).failed(137, seconds=100).disrupted()
    done = actions(*others("worker-1"), gone, retries=retries)
    assert [d.uid for d in done.deletions] == [gone.view().uid]
    assert (done.retries, [p.index for p in done.restarted], done.wait) == (retries, [1], None)
    (start,) = actions(*others("worker-1"), retries=retries).starts
    assert start.attempt == retries.get("worker-1", 0)


def test_a_drained_pod_of_a_later_attempt_counts_once_more() -> None:
    """Where a rule of podFailurePolicy counts it."""
    rule = {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget"}]}
    job = mxjob().v1().workers(2).restart("OnFailure").run_policy(podFailurePolicy={"rules": [rule]}).job()
    drained = pod_of(job, "worker", 1, attempt=2).running().disrupted().deleting()
    done = actions(drained, job=job, retries={"worker-0": 1, "worker-1": 2})
    assert (done.retries, [p.index for p in done.restarted]) == ({"worker-0": 1, "worker-1": 3}, [1])
    assert actions(drained, job=job, retries=done.retries).retries == done.retries


def test_a_failure_that_is_ignored_is_counted_apart() -> None:
    """By a rule of podFailurePolicy; the counts of other replicas stay."""
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [3]}}
    job = mxjob().v1().workers(2).restart("OnFailure").run_policy(podFailurePolicy={"rules": [rule]}).job()
    failed = pod_of(job, "worker", 1, attempt=3).failed(3)
    done = actions(failed, job=job, retries={"worker-1": 1}, ignored={"worker-0": 1, "worker-1": 2})
    assert (done.retries, done.ignored) == ({"worker-1": 1}, {"worker-0": 1, "worker-1": 3})


def test_the_failures_beside_the_one_that_fails_the_job_are_counted() -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}}
    job = mxjob().v1().workers(2).restart("OnFailure").run_policy(podFailurePolicy={"rules": [rule]}).job()
    pods = [pod_of(job, "worker", index).failed(code) for index, code in enumerate((3, 4))]
    assert actions(*pods, job=job).retries == {"worker-1": 1}


def test_a_stale_view_counts_to_the_same_number() -> None:
    dead = pod_of(JOB, "worker", 1).failed(1)
    for known in ({}, {"worker-1": 1}):
        assert actions(*others("worker-1"), dead, retries=known).retries == {"worker-1": 1}


def test_a_stale_view_of_an_attempt_long_replaced_takes_nothing_back() -> None:
    dead = pod_of(JOB, "worker", 1, attempt=0).failed(1)
    done = actions(*others("worker-1"), dead, retries={"worker-1": 5})
    assert (done.retries, done.restarted, done.starts) == ({"worker-1": 5}, (), ())


def test_the_shortest_of_several_delays() -> None:
    dead = [pod_of(JOB, "worker", i, attempt=i + 1).failed(1, seconds=100) for i in (0, 1)]
    assert actions(*others("worker-0", "worker-1"), *dead).wait == 2


def test_a_pod_of_an_older_spec_goes() -> None:
    old = pod_of(JOB, "worker", 1).of_another_spec().running()
    done = actions(*others("worker-1"), old)
    assert [d.name for d in done.deletions] == [old.view().name]
    assert (done.starts, done.retries) == ((), {})


def test_of_two_pods_of_a_replica_the_newer_attempt_stays() -> None:
    old, new = (pod_of(JOB, "worker", 1, attempt=n).running() for n in (1, 2))
    done = actions(*others("worker-1"), old, new)
    assert [d.name for d in done.deletions] == [old.view().name]


def test_a_terminating_pod_is_never_the_one_that_stays() -> None:
    old = pod_of(JOB, "worker", 1, attempt=1).running()
    new = pod_of(JOB, "worker", 1, attempt=2).running().deleting()
    assert actions(*others("worker-1"), old, new).deletions == ()


def test_replicas_that_the_job_no_longer_has() -> None:
    wider = mxjob().v1alpha1().servers(1).workers(4).restart("Never").job()
    surplus = [pod_of(wider, "worker", i).running() for i in (2, 3)]
    surplus[1].deleting()
    done = actions(*others(), *surplus)
    assert [d.name for d in done.deletions] == [surplus[0].view().name]


def test_pods_of_an_unknown_type_go() -> None:
    stranger = pod_of(JOB, "worker", 0).change(
        lambda p: p["metadata"]["labels"].update({"dljob.operator/replica-type": "evaluator"})
    )
    assert [d.name for d in actions(*others(), stranger).deletions] == [stranger.view().name]


def test_a_terminating_pod_delays_no_other_replica() -> None:
    cluster = FakeCluster(mxjob("digits").v1().workers(3))
    cluster.start()
    cluster.user_deletes("digits-worker-0")
    del cluster.pods["digits-worker-2"]
    cluster.step()
    assert "digits-worker-2" in cluster.pods
