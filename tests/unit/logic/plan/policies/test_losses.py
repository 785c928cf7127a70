"""Which failures of replicas are consequences of the loss of another one."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import losses
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.backoff_limit import exceeded
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.end_order import LEAD, REPORT_LAG
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.losses import Losses
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from support.builders import (
    PYTORCH,
    TENSORFLOW,
    MXJob,
    Pod,
    Resource,
    at,
    mxjob,
    observed,
    pod_of,
    pytorchjob,
    stamp,
    tfjob,
)
from support.fake_cluster import FakeCluster

LATER = 60
"""The time of the reconciles: all reports have come."""


def pytorch(policy: str = "ExitCode", workers: int = 4, **run_policy: Any) -> Resource:
    made = pytorchjob(master=1, worker=workers, **({"runPolicy": run_policy} if run_policy else {}))
    for entry in made["spec"]["pytorchReplicaSpecs"].values():
        entry["restartPolicy"] = policy
    return made


def parsed(resource: Resource) -> DLJob:
    return parse_job(resource, PYTORCH)


def pod(job: DLJob, replica: str) -> Pod:
    type_, index = replica.split("-")
    return pod_of(job, type_, int(index), framework=PYTORCH)


def found(job: DLJob, pods: list[Pod], status: Mapping[str, Any] | None = None, now: float = LATER) -> Losses:
    seen = Observed(tuple(one.view() for one in pods))
    job = dataclasses.replace(job, status=status or {})
    return losses.find(job, seen, seen, status or {}, at(now))


def excused(job: DLJob, pods: list[Pod], status: Mapping[str, Any] | None = None, now: float = LATER) -> set[str]:
    """The replicas whose failures are excused."""
    uids = found(job, pods, status, now).uids
    return {f"{one.view().type}-{one.view().index}" for one in pods if one.view().uid in uids}


def status_of(one: Losses) -> dict[str, Any]:
    return {"lastLoss": losses.write(one.last), "consequentRestarts": dict(one.counts)}


EXIT_CODE = parsed(pytorch())
ON_FAILURE = parsed(pytorch("OnFailure"))


@pytest.mark.parametrize(
    ("seconds", "code", "is_excused"),
    [
        (0, 1, True),  # in the same second: the signal comes first
        (2, 1, True),
        (6, 42, True),
        (losses.WINDOW, 1, True),
        (losses.WINDOW + 1, 1, False),
        (-1, 1, True),  # torchrun ends later than the process that the kernel killed
        (-LEAD, 1, True),
        (-LEAD - 1, 1, False),  # it was first
        (2, 137, True),
    ],
)
def test_a_retryable_loss_excuses_later_failures(seconds: int, code: int, is_excused: bool) -> None:
    pods = [
        pod(EXIT_CODE, "worker-2").failed(137, "OOMKilled"),
        pod(EXIT_CODE, "master-0").failed(code, seconds=seconds),
    ]
    assert excused(EXIT_CODE, pods, now=seconds + LATER) == ({"master-0"} if is_excused else set())


@pytest.mark.parametrize("change", ["deleting", "disrupted", "evicted"])
def test_so_does_the_deletion_or_disruption_of_a_pod(change: str) -> None:
    lost = pod(EXIT_CODE, "worker-2").running().created(-100)
    lost = {"deleting": lost.deleting, "disrupted": lost.failed(143).disrupted, "evicted": lost.refused_by_node}[
        change
    ]()
    if change == "evicted":
        lost.disrupted()
    first = found(EXIT_CODE, [lost], now=0)
    assert first.last is not None
    assert (first.last.replica, first.last.retryable, first.counts) == ("worker-2", True, {})
    # the pod is gone, and the status still knows it
    assert excused(EXIT_CODE, [pod(EXIT_CODE, "master-0").failed(1, seconds=5)], status_of(first)) == {"master-0"}


def test_a_permanent_failure_excuses_nothing() -> None:
    pods = [pod(EXIT_CODE, "worker-2").failed(2), pod(EXIT_CODE, "master-0").failed(1, seconds=2)]
    assert found(EXIT_CODE, pods) == losses.NONE


def test_under_never_a_loss_is_no_excuse_but_it_is_named() -> None:
    fake_cluster = FakeCluster(pytorch("Never"), PYTORCH)
    fake_cluster.start()
    fake_cluster.user_deletes(fake_cluster.pod("worker", 1)["metadata"]["name"])
    fake_cluster.settle()
    fake_cluster.advance(4)
    fake_cluster.exit("master", 0, 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    message = fake_cluster.status["failure"]["message"]
    assert message.endswith("this was 4 s after the loss of worker-1: pod example-job-worker-1 was deleted")


def test_a_replica_follows_a_loss_once() -> None:
    lost = pod(EXIT_CODE, "worker-2").failed(137)
    first = found(EXIT_CODE, [lost, pod(EXIT_CODE, "master-0").failed(1, seconds=3)])
    assert losses.write(first.last)["consequences"] == {"master-0": 3}
    again = [pod(EXIT_CODE, "master-0").failed(1, seconds=20)]
    assert excused(EXIT_CODE, again, status_of(first)) == set()
    # the same failure stays one, whatever reconcile sees it again
    same = [lost, pod(EXIT_CODE, "master-0").failed(1, seconds=3)]
    assert found(EXIT_CODE, same, status_of(first)) == dataclasses.replace(first, new="")


def test_the_next_loss_leaves_the_consequences_of_the_last_one_excused() -> None:
    master = pod(EXIT_CODE, "master-0").failed(1, seconds=3)
    first = found(EXIT_CODE, [pod(EXIT_CODE, "worker-2").failed(137), master])
    pods = [pod(EXIT_CODE, "worker-2").failed(137, seconds=4).change(another_uid), master]
    second = found(EXIT_CODE, pods, status_of(first))
    assert second.last is not None
    assert (second.last.time - at(0).timestamp(), second.last.consequences) == (4, {"master-0": -1})
    assert excused(EXIT_CODE, pods, status_of(first)) == {"master-0"}
    # and the replica may follow this one too
    later = [pod(EXIT_CODE, "master-0").failed(1, seconds=9)]
    assert excused(EXIT_CODE, later, status_of(second)) == {"master-0"}


def another_uid(resource: Resource) -> None:
    resource["metadata"]["uid"] += "-2"


@pytest.mark.parametrize("seconds", [1, REPORT_LAG])
def test_a_loss_that_is_reported_late_is_the_cause(seconds: int) -> None:
    survivor = pod(ON_FAILURE, "master-0").restarted(1, seconds=seconds)
    first = found(ON_FAILURE, [survivor])
    assert first.last is not None
    assert first.last.replica == "master-0"
    second = found(ON_FAILURE, [survivor, pod(ON_FAILURE, "worker-1").restarted(137)], status_of(first))
    assert second.last is not None
    assert (second.last.replica, second.last.consequences, second.counts) == (
        "worker-1",
        {"master-0": seconds},
        {"master-0": 1},
    )


@pytest.mark.parametrize(
    ("ago", "others", "waits"), [(0, True, 3.0), (2, True, 1.0), (3, True, None), (-5, True, None), (0, False, None)]
)
def test_a_fatal_failure_waits_for_the_report_of_another(ago: int, others: bool, waits: float | None) -> None:
    """A clock that is ahead does not make it wait."""
    second = pod(EXIT_CODE, "worker-0")
    pods = [pod(EXIT_CODE, "master-0").failed(1), second.running() if others else second.succeeded()]
    decided = found(EXIT_CODE, pods, now=ago)
    assert (decided.wait, len(decided.undecided)) == (waits, int(waits is not None))


# --- a loss from outside that is reported after what it has caused


def late(fake_cluster: FakeCluster, code: int, reason: str, seconds: int, *, together: bool) -> None:
    """The master ends by its own failure, and so many seconds later a worker's end is reported."""
    fake_cluster.exit("master", 0, 1)
    if not together:
        fake_cluster.step()
    fake_cluster.advance(seconds)
    fake_cluster.exit("worker", 2, code, reason)
    if reason == "Evicted":
        evicted = fake_cluster.pod("worker", 2)
        ended = {"exitCode": code, "reason": "Error", "finishedAt": fake_cluster.time}
        fake_cluster.set_state(evicted, "Failed", {"terminated": ended})
        evicted["status"] |= {"reason": reason, "conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    fake_cluster.step()
    fake_cluster.settle()


OUTSIDE = [(1, "OOMKilled"), (137, "OOMKilled"), (137, "Error"), (143, "Error"), (143, "Evicted")]


@pytest.mark.parametrize(("code", "reason"), OUTSIDE)
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("seconds", [0, 1, 2])
@pytest.mark.parametrize("policy", ["OnFailure", "ExitCode"])
def test_a_kill_explains_the_failures_shortly_before_its_report(
    policy: str, seconds: int, together: bool, code: int, reason: str
) -> None:
    fake_cluster = FakeCluster(pytorch(policy, backoffLimit=1), PYTORCH)
    fake_cluster.start()
    late(fake_cluster, code, reason, seconds, together=together)
    assert fake_cluster.status["state"] != "Failed"
    loss = fake_cluster.status["lastLoss"]
    assert (loss["replica"], loss["consequences"]) == ("worker-2", {"master-0": 0})
    assert fake_cluster.status["consequentRestarts"] == {"master-0": 1}
    # another one that follows is a consequence, too, and the same ends stay what they are
    fake_cluster.run_all()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] != "Failed"
    assert fake_cluster.status["lastLoss"]["replica"] == "worker-2"
    assert fake_cluster.status["consequentRestarts"] == {"master-0": 1, "worker-0": 1}


@pytest.mark.parametrize(("code", "reason"), OUTSIDE)
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("seconds", [0, 1, 2])
def test_under_never_the_kill_is_named(seconds: int, together: bool, code: int, reason: str) -> None:
    fake_cluster = FakeCluster(pytorch("Never"), PYTORCH)
    fake_cluster.start()
    late(fake_cluster, code, reason, seconds, together=together)
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["failure"]["pod"] == "example-job-worker-2"


@pytest.mark.parametrize("code", [1, 134, 139, 255])
def test_a_program_that_ends_itself_after_another_one_is_a_consequence(code: int) -> None:
    """JAX ends with 139 after the loss of a peer, NCCL's watchdog with 134, mpirun with 255."""
    fake_cluster = FakeCluster(pytorch("OnFailure"), PYTORCH)
    fake_cluster.start()
    late(fake_cluster, code, "Error", 1, together=True)
    loss = fake_cluster.status["lastLoss"]
    assert (loss["replica"], loss["consequences"]) == ("master-0", {"worker-2": 1})


def test_under_never_a_failure_is_decided_once_no_kill_can_be_reported_any_more() -> None:
    fake_cluster = FakeCluster(pytorch("Never"), PYTORCH)
    fake_cluster.start()
    fake_cluster.exit("master", 0, 1)
    assert fake_cluster.step().requeue_after == REPORT_LAG
    assert fake_cluster.status["state"] != "Failed"
    fake_cluster.advance(REPORT_LAG)
    fake_cluster.step()
    assert (fake_cluster.status["state"], fake_cluster.status["failure"]["pod"]) == ("Failed", "example-job-master-0")


@pytest.mark.parametrize("run_policy", [{}, {"backoffLimit": 0}], ids=["fatal", "over the limit"])
@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_failure_without_a_time_is_decided_at_once(policy: str, run_policy: dict[str, Any]) -> None:
    fake_cluster = FakeCluster(pytorch(policy, **run_policy), PYTORCH)
    fake_cluster.start()
    fake_cluster.exit("master", 0, 1)
    (container,) = fake_cluster.pod("master", 0)["status"]["containerStatuses"]
    del container["lastState" if policy == "OnFailure" else "state"]["terminated"]["finishedAt"]
    fake_cluster.step()
    assert (fake_cluster.status["state"] == "Failed") is (policy == "Never" or bool(run_policy))


def test_under_never_a_kill_is_decided_at_once() -> None:
    fake_cluster = FakeCluster(pytorch("Never"), PYTORCH)
    fake_cluster.start()
    fake_cluster.exit("worker", 2, 137)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Failed"


def test_under_never_the_last_failure_is_decided_at_once() -> None:
    fake_cluster = FakeCluster(pytorch("Never", workers=1), PYTORCH)
    fake_cluster.start()
    for type_ in ("master", "worker"):
        fake_cluster.exit(type_, 0, 1)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Failed"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_kill_stays_the_cause_once_its_pod_is_gone(is_first: bool) -> None:
    """Whichever of the two reports comes first."""
    kill = pod(EXIT_CODE, "worker-2").failed(1, "OOMKilled", seconds=1)
    master = pod(EXIT_CODE, "master-0").failed(1)
    first = found(EXIT_CODE, [kill] if is_first else [kill, master], now=1)
    again = found(EXIT_CODE, [master], status_of(first), now=2)
    assert again.last is not None
    assert (again.last.replica, again.last.time, again.last.lag) == ("worker-2", int(at(0).timestamp()), 1)
    assert excused(EXIT_CODE, [master], status_of(first), now=2) == {"master-0"}
    assert excused(EXIT_CODE, [master], status_of(again), now=9) == {"master-0"}


def test_a_second_kill_in_place_is_the_next_loss() -> None:
    kill, master = pod(ON_FAILURE, "worker-2").restarted(137, seconds=2), pod(ON_FAILURE, "master-0").restarted(1)
    first = found(ON_FAILURE, [kill, master])
    assert found(ON_FAILURE, [kill, master], status_of(first)) == dataclasses.replace(first, new="")
    second = found(ON_FAILURE, [pod(ON_FAILURE, "worker-2").restarted(137, 2, seconds=3), master], status_of(first))
    assert second.last is not None
    assert (second.last.time, second.last.lag) == (int(at(3).timestamp()), 0)


def test_of_two_kills_the_earlier_is_the_cause() -> None:
    pods = [pod(ON_FAILURE, "worker-0").restarted(137, seconds=1), pod(ON_FAILURE, "worker-2").restarted(137)]
    last = found(ON_FAILURE, pods).last
    assert last is not None
    assert (last.replica, last.consequences) == ("worker-2", {"worker-0": 1})


def test_a_failure_long_before_a_kill_is_not_explained_by_it() -> None:
    pods = [
        pod(ON_FAILURE, "worker-2").restarted(137, seconds=LEAD + 1),
        pod(ON_FAILURE, "master-0").restarted(1),
    ]
    last = found(ON_FAILURE, pods).last
    assert last is not None
    assert (last.replica, last.consequences) == ("master-0", {"worker-2": LEAD + 1})


def test_what_failed_with_the_first_failure_is_a_consequence_of_the_kill() -> None:
    """Of three ends the kill is reported last."""
    survivors = [pod(ON_FAILURE, "master-0").restarted(1), pod(ON_FAILURE, "worker-0").restarted(1, seconds=1)]
    first = found(ON_FAILURE, survivors)
    assert first.counts == {"worker-0": 1}
    pods = [*survivors, pod(ON_FAILURE, "worker-2").restarted(137, seconds=2)]
    second = found(ON_FAILURE, pods, status_of(first))
    assert second.last is not None
    assert (second.last.replica, second.last.consequences) == ("worker-2", {"master-0": 0, "worker-0": 1})
    assert second.counts == {"master-0": 1, "worker-0": 1} == found(ON_FAILURE, pods).counts


LIMITS: list[dict[str, Any]] = [
    {"backoffLimit": 0},
    {"maxRestartsPerReplica": 0},
    {"restartsWithin": {"count": 0, "seconds": 900}},
]


@pytest.mark.parametrize(
    "limit", [*LIMITS, {"backoffLimit": 0, "restartScope": "Job"}], ids=lambda limit: "-".join(limit)
)
def test_over_a_limit_a_kill_is_named_that_is_reported_late(limit: dict[str, Any]) -> None:
    fake_cluster = FakeCluster(pytorch("OnFailure", **limit), PYTORCH)
    fake_cluster.start()
    late(fake_cluster, 1, "OOMKilled", 1, together=False)
    assert fake_cluster.status["state"] == "Failed"
    assert "worker-2 exited with 1 (OOMKilled)" in fake_cluster.status["reason"]


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: next(iter(limit)))
def test_over_a_limit_a_failure_is_decided_once_no_kill_can_be_reported_any_more(limit: dict[str, Any]) -> None:
    fake_cluster = FakeCluster(pytorch("OnFailure", **limit), PYTORCH)
    fake_cluster.start()
    fake_cluster.exit("master", 0, 1)
    assert fake_cluster.step().requeue_after == REPORT_LAG
    assert fake_cluster.step().status is None
    fake_cluster.advance(REPORT_LAG)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Failed"
    assert "master-0 exited with 1" in fake_cluster.status["reason"]


def test_a_failure_that_a_kill_explains_later_is_not_over_the_limit_of_its_replica() -> None:
    fake_cluster = FakeCluster(pytorch("OnFailure", maxRestartsPerReplica=1), PYTORCH)
    fake_cluster.start()
    fake_cluster.exit("master", 0, 137)
    fake_cluster.settle()
    fake_cluster.advance(losses.WINDOW + 1)
    late(fake_cluster, 137, "OOMKilled", 1, together=False)
    assert fake_cluster.status["state"] == "Running"
    assert fake_cluster.status["consequentRestarts"] == {"master-0": 1}


# --- what is counted


@pytest.mark.parametrize("policy", ["OnFailure", "ExitCode"])
def test_one_loss_is_one_restart(policy: str) -> None:
    """All five replicas of the job end because one is killed."""
    fake_cluster = FakeCluster(pytorch(policy, backoffLimit=1, maxRestartsPerReplica=1), PYTORCH)
    fake_cluster.start()
    lose(fake_cluster)
    assert fake_cluster.status["lastLoss"]["replica"] == "worker-2"
    assert "exited with 137 (OOMKilled)" in fake_cluster.status["lastLoss"]["message"]
    assert fake_cluster.status["consequentRestarts"] == dict.fromkeys(SURVIVORS, 1)
    assert "state" not in fake_cluster.status or fake_cluster.status["state"] != "Failed"
    fake_cluster.run_all()
    lose(fake_cluster)
    assert fake_cluster.status["state"] == "Failed", "the second loss is over the limit"
    assert fake_cluster.status["failure"]["pod"] == "example-job-worker-2"
    assert "ended 2 times" in fake_cluster.status["reason"]
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded"


SURVIVORS = ("master-0", "worker-0", "worker-1", "worker-3")


def lose(fake_cluster: FakeCluster) -> None:
    fake_cluster.exit("worker", 2, 137, "OOMKilled")
    fake_cluster.step()
    fake_cluster.advance(3)
    for replica in SURVIVORS:
        type_, index = replica.split("-")
        if fake_cluster.status.get("state") != "Failed":
            fake_cluster.exit(type_, int(index), 1)
            fake_cluster.step()
    for _ in range(2):
        fake_cluster.settle()
        fake_cluster.advance(5)
    fake_cluster.settle()


def test_a_loss_is_recorded_before_its_pod_is_deleted() -> None:
    """The operator may be killed between the two."""
    fake_cluster = FakeCluster(pytorch(), PYTORCH)
    fake_cluster.start()
    fake_cluster.evict("worker", 2)
    first = fake_cluster.step()
    assert (first.deletions, first.requeue_after) == ((), 0.0)
    assert fake_cluster.status["lastLoss"]["replica"] == "worker-2"
    second = fake_cluster.step()
    assert [deletion.name for deletion in second.deletions] == ["example-job-worker-2"]
    assert "restarts 1 failed replicas: example-job-worker-2" in fake_cluster.events[-1].message


def test_the_event_of_the_restart_names_the_cause_first() -> None:
    fake_cluster = FakeCluster(pytorch(), PYTORCH)
    fake_cluster.start()
    fake_cluster.exit("worker", 2, 137, "OOMKilled", seconds=-3)
    fake_cluster.exit("master", 0, 1)
    fake_cluster.step()
    assert (
        "restarts 2 failed replicas: example-job-worker-2, example-job-master-0; container pytorch of pod example-job-worker-2"
        in (fake_cluster.events[-1].message)
    )


def test_restarts_in_place_are_forgotten_with_their_pod() -> None:
    pods = [pod(ON_FAILURE, "worker-0").restarted(1, 3)]
    status = {"consequentRestarts": {"worker-0": 3, "worker-1": 2, "master-0": 1}, "retries": {"worker-1": 1}}
    counts = found(ON_FAILURE, pods, status).counts
    assert counts == {"worker-0": 3, "worker-1": 1}
    forgiven = found(ON_FAILURE, pods, status).forgiven({"worker-1": 1}, [one.view() for one in pods])
    assert forgiven == {"worker-0": 3, "worker-1": 1}


def test_over_the_limit_a_consequence_is_not_the_last_error() -> None:
    job = parsed(pytorch("OnFailure", backoffLimit=0))
    pods = [pod(job, "worker-2").restarted(137), pod(job, "master-0").restarted(1, seconds=3)]
    failure = exceeded(job, {}, [one.view() for one in pods], found(job, pods))
    assert failure is not None
    assert (failure.pod, failure.exit_code) == ("example-job-worker-2", 137)
    assert "ended 1 times" in failure.message
    # its pod may be gone
    gone = found(job, pods[1:], status_of(found(job, pods)))
    failure = exceeded(job, {"worker-2": 1}, [pods[1].view()], gone)
    assert failure is not None
    assert failure.message.endswith("last: container pytorch of pod example-job-worker-2 exited with 137 (Error)")


def test_a_drained_pod_is_no_restart_to_be_forgiven() -> None:
    pods = [pod(ON_FAILURE, name).running().deleting().disrupted() for name in ("worker-0", "worker-1")]
    assert found(ON_FAILURE, pods, now=0).counts == {}


# --- with the other policies


def test_a_rule_decides_about_the_cause_only() -> None:
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]
    fake_cluster = FakeCluster(pytorch("ExitCode", podFailurePolicy={"rules": rules}), PYTORCH)
    fake_cluster.start()
    fake_cluster.exit("worker", 2, 137, seconds=-3)
    fake_cluster.exit("master", 0, 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Restarting"
    fake_cluster.advance(2)
    fake_cluster.settle()
    assert len(fake_cluster.pods) == 5, "both have new pods"
    fake_cluster.run_all()
    fake_cluster.advance(losses.WINDOW)
    fake_cluster.exit("master", 0, 1)
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "PodFailurePolicy"


def test_an_ignored_failure_is_not_forgiven_twice() -> None:
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}]
    fake_cluster = FakeCluster(pytorch("OnFailure", podFailurePolicy={"rules": rules}), PYTORCH)
    fake_cluster.start()
    fake_cluster.exit("worker", 2, 137, seconds=-3)
    fake_cluster.exit("master", 0, 1)
    fake_cluster.settle()
    assert fake_cluster.status["ignoredRetries"] == {"master-0": 1}
    assert "consequentRestarts" not in fake_cluster.status


def test_a_lost_server_of_a_list_layout_does_not_fail_the_chief() -> None:
    fake_cluster = FakeCluster(tfjob(MASTER=1, PS=1, WORKER=1), TENSORFLOW)
    fake_cluster.start()
    fake_cluster.exit("ps", 0, 137)
    fake_cluster.exit("master", 0, 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] != "Failed"
    # the kubelet has restarted both; without a loss the code is permanent
    fake_cluster.advance(losses.WINDOW + 1)
    fake_cluster.exit("master", 0, 1)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"


def test_a_bug_in_a_worker_of_a_list_layout_still_fails_the_job_with_its_scheduler() -> None:
    fake_cluster = FakeCluster(mxjob().v1alpha1().workers(2).restart("OnFailure"))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.exit("scheduler", 0, 1, seconds=1)
    fake_cluster.advance(5)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"


def test_a_new_spec_forgets_the_loss() -> None:
    fake_cluster = FakeCluster(pytorch("OnFailure"), PYTORCH)
    fake_cluster.start()
    lose(fake_cluster)
    assert fake_cluster.status["consequentRestarts"]
    fake_cluster.edit(change_images)
    fake_cluster.settle()
    assert not {"lastLoss", "consequentRestarts"} & set(fake_cluster.status)


def change_images(spec: Resource) -> None:
    for entry in spec["pytorchReplicaSpecs"].values():
        entry["template"]["spec"]["containers"][0]["image"] = "new"


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "text",
        {"replica": "worker-1"},
        {"replica": 1, "uid": "u", "time": stamp(), "message": "m"},
        {"replica": "worker-1", "uid": "u", "time": "yesterday", "message": "m"},
        {"replica": "worker-1", "uid": "u", "time": 5, "message": "m"},
    ],
)
def test_a_malformed_status_is_no_loss(stored: object) -> None:
    pods = [pod(EXIT_CODE, "master-0").failed(1, seconds=2)]
    assert excused(EXIT_CODE, pods, {"lastLoss": stored, "consequentRestarts": stored}) == set()


def test_malformed_consequences_are_dropped() -> None:
    loss = {"replica": "worker-1", "uid": "u", "time": stamp(), "message": "m", "retryable": True}
    status = {"lastLoss": {**loss, "consequences": {"master-0": "x", "worker-0": True}}}
    read = found(EXIT_CODE, [], status).last
    assert read is not None
    assert read.consequences == {}


def test_malformed_counts_are_dropped() -> None:
    status = {"consequentRestarts": {"master-0": 2, "worker-0": "x", "worker-1": -1}, "retries": {"master-0": "x"}}
    job = parsed({**pytorch(), "status": status})
    assert found(job, [], status).counts == {}


def test_a_loss_before_the_first_year_is_none() -> None:
    """A tenant may write such a time into the status."""
    loss = {"replica": "worker-1", "uid": "u", "time": "0001-01-01T00:00:00+14:00", "message": "m", "retryable": True}
    assert losses.write(found(EXIT_CODE, [], {"lastLoss": loss}).last) == {}


def test_a_single_replica_has_no_others() -> None:
    job = mxjob().scheduler(1).servers(0).workers(0)
    assert single(job) == losses.NONE


def single(job: MXJob) -> Losses:
    made = job.job()
    seen = observed(made, [pod_of(made, "scheduler").restarted(1)])
    return losses.find(made, seen, seen, {}, at(LATER))


@pytest.mark.parametrize("seconds", [-1, 0])
def test_a_failure_that_is_not_decided_yet_keeps_the_job_from_success(seconds: int) -> None:
    """The worker has failed for good before, or just after, its scheduler exited with 0."""
    fake_cluster = FakeCluster(mxjob().v1().workers(2).restart("ExitCode"))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1, seconds=seconds)
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["failure"]["pod"] == "digits-worker-0"
