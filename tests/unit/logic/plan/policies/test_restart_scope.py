"""runPolicy.restartScope Job: the loss of one replica restarts all replicas of the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import spec_hashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.replicas import Progress
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.restart_scope import (
    attempt_of,
    current_attempt,
    next_actions,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Fact
from support.builders import (
    CAFFE2,
    MPI,
    MXNET,
    MXJob,
    at,
    caffe2job,
    environment_of,
    mpijob,
    mxjob,
    observed,
    pod_of,
    pods_of,
)
from support.fake_cluster import FakeCluster

EVERYONE = ["scheduler-0", "server-0", "worker-0", "worker-1"]


def of_one_piece(policy: str = "OnFailure", **run_policy: Any) -> MXJob:
    job = mxjob().v1().scheduler(1).servers(1).workers(2).restart(policy)
    return job.run_policy(restartScope="Job", **run_policy)


def running(job: MXJob | None = None) -> FakeCluster:
    fake_cluster = FakeCluster(job or of_one_piece())
    fake_cluster.start()
    assert fake_cluster.status["phase"] == "Running"
    return fake_cluster


def uids(fake_cluster: FakeCluster) -> set[str]:
    return {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}


def begin_anew(fake_cluster: FakeCluster) -> None:
    """Let the job restart after the loss of a replica: the delay, the deletion of the pods, and the next attempt."""
    fake_cluster.settle()
    fake_cluster.advance(400)
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()


def crash(fake_cluster: FakeCluster) -> None:
    fake_cluster.exit("worker", 1, 1)


def kill(fake_cluster: FakeCluster) -> None:
    fake_cluster.exit("server", 0, 137)


def stop_the_chief(fake_cluster: FakeCluster) -> None:
    fake_cluster.exit("scheduler", 0, 143)


def take_away(fake_cluster: FakeCluster) -> None:
    fake_cluster.user_deletes(fake_cluster.pod("worker", 0)["metadata"]["name"])
    fake_cluster.kubelet_deletes()


def evict(fake_cluster: FakeCluster) -> None:
    fake_cluster.evict("server", 0)


@pytest.mark.parametrize(("loss", "errors"), [(crash, 1), (kill, 1), (stop_the_chief, 1), (take_away, 0), (evict, 0)])
def test_all_replicas_restart(loss: Callable[[FakeCluster], None], errors: int) -> None:
    fake_cluster = running()
    before = uids(fake_cluster)
    loss(fake_cluster)
    begin_anew(fake_cluster)
    assert sorted(fake_cluster.replicas()) == EVERYONE
    assert not uids(fake_cluster) & before
    assert fake_cluster.status["attempt"] == 1
    assert fake_cluster.status.get("retries", {}).get("job", 0) == errors  # disruptions do not count
    assert (fake_cluster.status["phase"], fake_cluster.status["state"]) == ("Running", "Running")


def test_the_kubelet_restarts_nothing_by_itself() -> None:
    fake_cluster = running()
    assert {pod["spec"]["restartPolicy"] for pod in fake_cluster.pods.values()} == {"Never"}


def test_the_status_and_an_event_say_why() -> None:
    fake_cluster = running()
    fake_cluster.exit("worker", 1, 3, message="loss is not a number")
    fake_cluster.step()
    (condition,) = [c for c in fake_cluster.status["conditions"] if c["type"] == "Restarting"]
    assert "restarts all its replicas" in condition["message"]
    assert "worker-1 exited with 3" in condition["message"]
    assert "loss is not a number" in condition["message"]
    assert [e.type for e in fake_cluster.events if e.reason == "MXJobRestarting"] == ["Warning"]
    assert fake_cluster.status["phase"] == "Creating"


def test_the_first_of_several_failures_is_named() -> None:
    fake_cluster = running()
    for index, code in enumerate((3, 4)):
        fake_cluster.exit("worker", index, code)
    fake_cluster.step()
    (condition,) = [c for c in fake_cluster.status["conditions"] if c["type"] == "Restarting"]
    assert "worker-0 exited with 3" in condition["message"]


@pytest.mark.parametrize("job", [mxjob().v1alpha1().servers(1).workers(2), of_one_piece("ExitCode")])
def test_a_failure_whose_cause_is_not_known_yet_counts_if_a_lost_pod_ends_the_attempt(job: MXJob) -> None:
    fake_cluster = running(job.run_policy(restartScope="Job"))
    fake_cluster.exit("scheduler", 0, 1)
    take_away(fake_cluster)
    fake_cluster.step()
    assert (fake_cluster.status["attempt"], fake_cluster.status["retries"]) == (1, {"job": 1})


def test_counted_before_anything_is_deleted() -> None:
    fake_cluster = running()
    crash(fake_cluster)
    first = fake_cluster.step()
    assert (first.deletions, first.pods, first.requeue_after) == ((), (), 0)
    assert fake_cluster.status["retries"] == {"job": 1}


@pytest.mark.parametrize(("loss", "presumes"), [(take_away, True), (crash, False), (evict, False)])
def test_only_a_restart_for_missing_pods_presumes_that_they_were_deleted(
    loss: Callable[[FakeCluster], None], presumes: bool
) -> None:
    fake_cluster = running()
    loss(fake_cluster)
    assert bool(fake_cluster.planned().presumed(Fact.PODS_ARE_DELETED)) is presumes
    fake_cluster.step()
    assert not fake_cluster.planned().presumed(Fact.PODS_ARE_DELETED)


def test_a_count_that_was_not_written_is_counted_once() -> None:
    fake_cluster = running()
    crash(fake_cluster)
    fake_cluster.step(status_gets_lost=True)
    fake_cluster.step()
    fake_cluster.step()
    assert (fake_cluster.status["attempt"], fake_cluster.status["retries"]) == (1, {"job": 1})


def test_no_pod_is_made_while_one_of_the_attempt_before_is_there() -> None:
    fake_cluster = running()
    crash(fake_cluster)
    for _ in range(6):
        fake_cluster.advance(100)
        done = fake_cluster.step()
        assert not done.pods  # the old pods still terminate
    fake_cluster.kubelet_deletes()
    fake_cluster.settle()
    assert sorted(fake_cluster.replicas()) == EVERYONE


def test_the_failed_pods_end_sets_the_time_of_the_next_attempt() -> None:
    fake_cluster = running()
    fake_cluster.advance(100)
    crash(fake_cluster)
    fake_cluster.step()
    done = fake_cluster.step()
    assert len(done.deletions) == 3  # the running pods are deleted immediately
    fake_cluster.kubelet_deletes()
    assert not fake_cluster.step().pods
    fake_cluster.advance(1)
    fake_cluster.settle()
    assert sorted(fake_cluster.replicas()) == EVERYONE


def test_replicas_that_were_done_run_again() -> None:
    fake_cluster = running()
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["completed"] == {"worker": "0"}
    crash(fake_cluster)
    begin_anew(fake_cluster)
    assert sorted(fake_cluster.replicas()) == EVERYONE
    assert "completed" not in fake_cluster.status


@pytest.mark.parametrize(("held", "attempt"), [(2, 2), (0, 0), (-1, 0), ("2", 0), (None, 0)])
def test_the_attempt_in_the_status(held: object, attempt: int) -> None:
    assert attempt_of({"attempt": held}) == attempt


@pytest.mark.parametrize(
    ("recorded", "pods", "expected"),
    [
        (0, [], 0),
        (3, [], 3),
        (0, [(1, "")], 1),
        (2, [(1, "")], 2),
        (0, [(0, ""), (2, "")], 2),
        (0, [(1, "deleting")], 0),
        (1, [(2, "deleting"), (1, "")], 1),
    ],
)
def test_the_attempt_is_that_of_the_newest_pods_that_stay(
    recorded: int, pods: list[tuple[int, str]], expected: int
) -> None:
    job = of_one_piece().job()
    made = [pod_of(job, "worker", place, attempt).running() for place, (attempt, _) in enumerate(pods)]
    views = [pod.deleting() if how else pod for pod, (_, how) in zip(made, pods, strict=True)]
    assert current_attempt(observed(job, views), recorded) == expected


def test_a_pod_that_was_not_created_yet_is_not_lost() -> None:
    fake_cluster = FakeCluster(of_one_piece())
    fake_cluster.settle()
    fake_cluster.user_deletes(fake_cluster.pod("worker", 0)["metadata"]["name"])
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    assert fake_cluster.status["phase"] == "Running"


def test_an_edit_does_not_start_an_attempt() -> None:
    fake_cluster = running()
    fake_cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"].update(replicas=3))
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    assert sorted(fake_cluster.replicas()) == [*EVERYONE, "worker-2"]
    assert not {"retries", "attempt"} & fake_cluster.status.keys()


@pytest.mark.parametrize(("type_", "index"), [("worker", 2), ("worker", 3), ("server", 1)])
def test_a_pod_of_a_replica_that_the_job_does_not_have_goes(type_: str, index: int) -> None:
    """Its hash is the current one: somebody has changed its labels."""
    job = of_one_piece().job()
    wider = mxjob().v1().scheduler(1).servers(3).workers(4).restart("OnFailure").job()
    pods = [pod.running() for pod in pods_of(job)]
    hashes = spec_hashes(job)
    current = {"dljob.operator/spec-hash": hashes.of(type_, 0)}
    surplus = pod_of(wider, type_, index).running().change(lambda pod: pod["metadata"]["annotations"].update(current))
    done = next_actions(job, observed(job, [*pods, surplus]), Progress(hashes, {}, {}), at(100))
    assert ([one.name for one in done.deletions], done.starts, done.begins) == ([surplus.view().name], (), 0)


@pytest.mark.parametrize(("completed", "begins"), [(set(), 0), ({2}, 1)])
def test_a_missing_pod_is_no_addition_where_a_later_replica_has_completed(completed: set[int], begins: int) -> None:
    """The workers of an MPIJob may grow without a restart."""
    job = parse_job({**mpijob(3, runPolicy={"restartScope": "Job"}), "status": {"phase": "Running"}}, MPI)
    pods = [pod_of(job, "worker", index, framework=MPI).running() for index in range(2 - len(completed))]
    pods.append(pod_of(job, "launcher", framework=MPI).running())
    progress = Progress(spec_hashes(job), {}, {"worker": completed})
    assert next_actions(job, observed(job, pods), progress, at(100)).begins == begins


def test_backoff_limit() -> None:
    fake_cluster = running(of_one_piece(backoffLimit=1))
    crash(fake_cluster)
    begin_anew(fake_cluster)
    assert fake_cluster.outcome[1] == "Running"
    crash(fake_cluster)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded"


def test_a_permanent_exit_code_still_ends_the_job() -> None:
    fake_cluster = running(of_one_piece("ExitCode"))
    fake_cluster.exit("worker", 1, 2)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"


def test_the_success_target_decides_success() -> None:
    fake_cluster = running()
    crash(fake_cluster)
    begin_anew(fake_cluster)
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"


def test_v1alpha1_flavors_restart_together_too() -> None:
    job = mxjob().v1alpha1().servers(1).workers(2).restart("OnFailure").run_policy(restartScope="Job")
    fake_cluster = running(job)
    crash(fake_cluster)
    begin_anew(fake_cluster)
    assert sorted(fake_cluster.replicas()) == EVERYONE
    assert {fake_cluster.attempt("worker", 0), fake_cluster.attempt("scheduler", 0)} == {1}


def test_caffe2_meets_under_another_run_id() -> None:
    fake_cluster = FakeCluster(
        caffe2job(2, {"restartPolicy": "OnFailure"}, RuntimeID="7", runPolicy={"restartScope": "Job"}), CAFFE2
    )
    fake_cluster.start()
    seen = environment_of(fake_cluster.pod("worker", 0), "caffe2")
    assert seen["RUN_ID"] == "7"
    fake_cluster.exit("worker", 1, 1)
    begin_anew(fake_cluster)
    for index in (0, 1):
        assert environment_of(fake_cluster.pod("worker", index), "caffe2")["RUN_ID"] == "7-1"


def test_a_replica_restarts_alone_by_default() -> None:
    fake_cluster = running(mxjob().v1().scheduler(1).servers(1).workers(2).restart("OnFailure"))
    fake_cluster.exit("worker", 1, 1)
    fake_cluster.settle()
    assert "retries" not in fake_cluster.status


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (of_one_piece("Always"), "restartPolicy Always"),
        (mxjob().v1().run_policy(restartScope="Group"), "restartScope: 'Group' is none of Replica, Job"),
    ],
)
def test_what_is_refused(job: MXJob, message: str) -> None:
    with pytest.raises(InvalidJob, match=message):
        parse_job(job.resource(), MXNET)
