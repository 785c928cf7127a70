"""runPolicy.restartScope Job: one replica lost is the whole job begun anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import CAFFE2, MXNET, MXJob, caffe2job, environment_of, mxjob
from support.fake_cluster import World

EVERYONE = ["scheduler-0", "server-0", "worker-0", "worker-1"]


def of_one_piece(policy: str = "OnFailure", **run_policy: Any) -> MXJob:
    job = mxjob().v1().scheduler(1).servers(1).workers(2).restart(policy)
    return job.run_policy(restartScope="Job", **run_policy)


def running(job: MXJob | None = None) -> World:
    world = World(job or of_one_piece())
    world.start()
    assert world.status["phase"] == "Running"
    return world


def uids(world: World) -> set[str]:
    return {pod["metadata"]["uid"] for pod in world.pods.values()}


def begin_anew(world: World) -> None:
    """What follows once a replica is lost: the delay, the pods' end, and the next attempt up and running."""
    world.settle()
    world.advance(400)
    world.settle()
    world.run_all()
    world.settle()


def crash(world: World) -> None:
    world.exit("worker", 1, 1)


def kill(world: World) -> None:
    world.exit("server", 0, 137)


def stop_the_chief(world: World) -> None:
    world.exit("scheduler", 0, 143)


def take_away(world: World) -> None:
    world.user_deletes(world.pod("worker", 0)["metadata"]["name"])
    world.kubelet_deletes()


def evict(world: World) -> None:
    world.evict("server", 0)


@pytest.mark.parametrize(("loss", "errors"), [(crash, 1), (kill, 1), (stop_the_chief, 1), (take_away, 0), (evict, 0)])
def test_all_replicas_begin_anew(loss: Callable[[World], None], errors: int) -> None:
    world = running()
    before = uids(world)
    loss(world)
    begin_anew(world)
    assert sorted(world.replicas()) == EVERYONE
    assert not uids(world) & before
    assert world.status["attempt"] == 1
    assert world.status.get("retries", {}).get("job", 0) == errors  # what the cluster took away counts for no limit
    assert (world.status["phase"], world.status["state"]) == ("Running", "Running")


def test_the_kubelet_restarts_nothing_by_itself() -> None:
    world = running()
    assert {pod["spec"]["restartPolicy"] for pod in world.pods.values()} == {"Never"}


def test_the_status_and_an_event_say_why() -> None:
    world = running()
    world.exit("worker", 1, 3, message="loss is not a number")
    world.step()
    (condition,) = [c for c in world.status["conditions"] if c["type"] == "Restarting"]
    assert "restarts all its replicas" in condition["message"]
    assert "worker-1 exited with 3" in condition["message"]
    assert "loss is not a number" in condition["message"]
    assert [e.type for e in world.events if e.reason == "MXJobRestarting"] == ["Warning"]
    assert world.status["phase"] == "Creating"


def test_counted_before_anything_is_deleted() -> None:
    world = running()
    crash(world)
    first = world.step()
    assert (first.deletions, first.pods) == ((), ())
    assert world.status["retries"] == {"job": 1}


def test_a_count_that_was_not_written_is_counted_once() -> None:
    world = running()
    crash(world)
    world.step(status_gets_lost=True)
    world.step()
    world.step()
    assert (world.status["attempt"], world.status["retries"]) == (1, {"job": 1})


def test_no_pod_is_made_while_one_of_the_attempt_before_is_there() -> None:
    world = running()
    crash(world)
    for _ in range(6):
        world.advance(100)
        done = world.step()
        assert not done.pods  # nobody has ended the terminating ones yet
    world.kubelet_deletes()
    world.settle()
    assert sorted(world.replicas()) == EVERYONE


def test_the_failed_pod_tells_the_time_until_the_next_attempt() -> None:
    world = running()
    crash(world)
    world.step()
    done = world.step()
    assert len(done.deletions) == 3  # what still ran is ended at once
    world.kubelet_deletes()
    assert not world.step().pods
    world.advance(1)
    world.settle()
    assert sorted(world.replicas()) == EVERYONE


def test_replicas_that_were_done_run_again() -> None:
    world = running()
    world.exit("worker", 0, 0)
    world.settle()
    assert world.status["completed"] == {"worker": "0"}
    crash(world)
    begin_anew(world)
    assert sorted(world.replicas()) == EVERYONE
    assert "completed" not in world.status


def test_a_pod_that_is_not_there_yet_is_no_loss() -> None:
    world = World(of_one_piece())
    world.settle()
    world.user_deletes(world.pod("worker", 0)["metadata"]["name"])
    world.settle()
    world.run_all()
    world.settle()
    assert world.status["phase"] == "Running"


def test_an_edit_is_no_loss() -> None:
    world = running()
    world.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"].update(replicas=3))
    world.settle()
    world.run_all()
    world.settle()
    assert sorted(world.replicas()) == [*EVERYONE, "worker-2"]
    assert not {"retries", "attempt"} & world.status.keys()


def test_backoff_limit() -> None:
    world = running(of_one_piece(backoffLimit=1))
    crash(world)
    begin_anew(world)
    assert world.outcome[1] == "Running"
    crash(world)
    world.settle()
    assert world.status["state"] == "Failed"
    assert world.status["failure"]["reason"] == "BackoffLimitExceeded"


def test_a_permanent_exit_code_still_ends_the_job() -> None:
    world = running(of_one_piece("ExitCode"))
    world.exit("worker", 1, 2)
    world.settle()
    assert world.status["state"] == "Failed"


def test_success_is_the_chiefs() -> None:
    world = running()
    crash(world)
    begin_anew(world)
    world.exit("scheduler", 0, 0)
    world.settle()
    assert world.status["state"] == "Succeeded"


def test_the_old_dialects_too() -> None:
    job = mxjob().v1alpha1().servers(1).workers(2).restart("OnFailure").run_policy(restartScope="Job")
    world = running(job)
    crash(world)
    begin_anew(world)
    assert sorted(world.replicas()) == EVERYONE
    assert {world.attempt("worker", 0), world.attempt("scheduler", 0)} == {1}


def test_caffe2_meets_under_another_run_id() -> None:
    world = World(
        caffe2job(2, {"restartPolicy": "OnFailure"}, RuntimeID="7", runPolicy={"restartScope": "Job"}), CAFFE2
    )
    world.start()
    seen = environment_of(world.pod("worker", 0), "caffe2")
    assert seen["RUN_ID"] == "7"
    world.exit("worker", 1, 1)
    begin_anew(world)
    for index in (0, 1):
        assert environment_of(world.pod("worker", index), "caffe2")["RUN_ID"] == "7-1"


def test_a_replica_restarts_alone_by_default() -> None:
    world = running(mxjob().v1().scheduler(1).servers(1).workers(2).restart("OnFailure"))
    world.exit("worker", 1, 1)
    world.settle()
    assert "retries" not in world.status


@pytest.mark.parametrize(
    ("job", "told"),
    [
        (of_one_piece("Always"), "restartPolicy Always"),
        (mxjob().v1().run_policy(restartScope="Group"), "restartScope: 'Group' is none of Replica, Job"),
    ],
)
def test_what_is_refused(job: MXJob, told: str) -> None:
    with pytest.raises(InvalidJob, match=told):
        parse_job(job.resource(), MXNET)
