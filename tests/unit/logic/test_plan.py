"""Lives of jobs that all flavors have in common, from nothing to the end."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies import cleanup
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan
from support.builders import NOW, MXJob, echo_framework, echojob, environment_of, mxjob
from support.fake_cluster import World, is_quiet

DIALECTS = ("v1", "v1alpha1", "fioravanzo", "mpba")


def job(flavor: str) -> MXJob:
    return mxjob().flavor(flavor).servers(2).workers(2).restart("OnFailure")


# --- the good life


@pytest.mark.parametrize("flavor", DIALECTS)
def test_the_first_pass_creates_everything(flavor: str) -> None:
    world = World(job(flavor))
    done = world.step()
    assert len(done.pods) == 5
    assert len(done.services) == (2 if flavor == "v1" else 1)
    assert done.deletions == ()
    assert done.status
    assert (done.status["phase"], done.status["replicas"]) == ("Creating", "0/5")
    (event,) = done.events
    assert (event.type, event.reason) == ("Normal", "SuccessfulCreatePod")
    assert event.message == "Created 5 of 5 pods: " + ", ".join(p["metadata"]["name"] for p in done.pods)


@pytest.mark.parametrize("flavor", DIALECTS)
def test_with_nothing_new_there_is_nothing_to_do(flavor: str) -> None:
    world = World(job(flavor))
    world.step()
    assert world.step() == Plan()
    world.run_all()
    world.settle()
    world.advance(3600)
    assert world.step() == Plan()


@pytest.mark.parametrize("flavor", DIALECTS)
def test_to_the_end(flavor: str) -> None:
    world = World(job(flavor))
    world.start()
    assert world.outcome == ("Running", "Running")
    assert world.status["replicas"] == "5/5"
    world.advance(60)
    world.exit("scheduler", 0, 0)

    ending = world.step()
    assert not ending.deletions, "first it is written down that the job has ended"
    clean_at_once = flavor == "v1"  # whose default leaves everything
    assert world.outcome == ("Done" if clean_at_once else "CleanUp", "Succeeded")
    assert ending.requeue_after == (None if clean_at_once else 0)
    assert world.status["completionTime"] == world.time

    world.settle()
    assert world.outcome == ("Done", "Succeeded")
    assert (world.replicas() == ["scheduler-0"]) != clean_at_once
    assert bool(world.services) == clean_at_once
    assert [e.reason for e in world.events] == ["SuccessfulCreatePod", "MXJobRunning", "MXJobSucceeded"]
    assert world.conditions == [("Created", "True"), ("Running", "False"), ("Succeeded", "True")]
    assert world.status["completed"] == {"scheduler": "0"}
    assert world.step() == Plan()


@pytest.mark.parametrize("flavor", DIALECTS)
def test_phase_running_needs_every_replica(flavor: str) -> None:
    world = World(job(flavor))
    world.settle()
    world.run_all()
    pod = world.pod("worker", 1)
    pod["status"] = {"phase": "Pending"}
    world.settle()
    assert (world.status["phase"], world.status["replicas"]) == ("Creating", "4/5")
    world.run_all()
    world.settle()
    assert world.status["phase"] == "Running"


def test_what_keeps_a_pod_from_starting_is_the_reason_as_long_as_it_does() -> None:
    world = World(job("v1"))
    world.settle()
    world.run_all()
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    started = world.pod("worker", 1)["status"]
    world.pod("worker", 1)["status"] = {
        "phase": "Pending",
        "containerStatuses": [{"name": "mxnet", "restartCount": 0, "state": {"waiting": waiting}}],
    }
    world.settle()
    assert world.status["reason"] == "digits-worker-1: ImagePullBackOff: no such image"
    world.pod("worker", 1)["status"] = started
    world.settle()
    assert world.status["reason"] == ""


def test_many_pods_are_not_all_named_in_the_event() -> None:
    world = World(job("v1").workers(50))
    world.step()
    assert world.events[0].message.endswith(", ...")
    assert len(world.events[0].message) < 200


@pytest.mark.parametrize("policy", ["All", "Running", "None"])
@pytest.mark.parametrize("flavor", ["v1", "v1alpha1"])
def test_clean_pod_policy(flavor: str, policy: str) -> None:
    world = World(job(flavor).run_policy(cleanPodPolicy=policy))
    world.start()
    world.exit("worker", 0, 0)
    world.settle()
    world.exit("scheduler", 0, 0)
    world.settle()
    left = {"All": 0, "Running": 2, "None": 5}[policy]
    assert len(world.pods) == left
    assert bool(world.services) == (policy == "None")
    assert world.outcome == ("Done", "Succeeded")


def test_cleaning_up_waits_for_what_terminates() -> None:
    world = World(job("v1alpha1"))
    world.start()
    world.exit("scheduler", 0, 0)
    world.step()
    world.advance(cleanup.GRACE_PERIOD)
    for _ in range(3):
        world.step()
    assert world.outcome == ("CleanUp", "Succeeded")
    assert is_quiet(world.step())
    world.kubelet_deletes()
    world.step()
    assert world.outcome == ("Done", "Succeeded")


def test_who_ends_with_the_chief_keeps_his_log() -> None:
    """The kubelet reports the scheduler's end a moment before the workers'."""
    world = World(job("v1alpha1"))
    world.start()
    everybody = world.replicas()
    world.exit("scheduler", 0, 0)
    world.step()
    assert world.step().requeue_after == cleanup.GRACE_PERIOD
    for type_, index in (replica.rsplit("-", 1) for replica in everybody if replica != "scheduler-0"):
        assert world.outcome == ("CleanUp", "Succeeded")
        assert is_quiet(world.step()), "names and servers are there for whoever still works"
        world.exit(type_, int(index), 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")
    assert world.replicas() == everybody
    assert not world.services
    assert world.now == NOW


def test_a_job_kept_for_less_is_not_waited_for() -> None:
    world = World(job("v1alpha1").run_policy(ttlSecondsAfterFinished=2))
    world.start()
    world.exit("scheduler", 0, 0)
    world.step()
    assert world.step().requeue_after == 2
    world.advance(2)
    assert world.step().delete_job


# --- the clocks


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1"])
def test_time_to_live(flavor: str) -> None:
    world = World(job(flavor).run_policy(ttlSecondsAfterFinished=60))
    world.start()
    world.exit("scheduler", 0, 0)
    ended = world.now
    last = world.settle()[-1]
    assert last.requeue_after == 60 - (world.now - ended).total_seconds()
    world.advance(last.requeue_after - 1)
    assert world.step().requeue_after == 1
    assert not world.is_deleted
    world.advance(1)
    assert world.step() == Plan(delete_job=True)


def test_time_to_live_of_0() -> None:
    world = World(job("v1").run_policy(ttlSecondsAfterFinished=0))
    world.start()
    world.exit("scheduler", 0, 0)
    world.step()
    assert world.step().delete_job
    assert world.outcome == ("Done", "Succeeded"), "the end is told before the job goes"


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1"])
def test_deadline(flavor: str) -> None:
    world = World(job(flavor).run_policy(activeDeadlineSeconds=60, cleanPodPolicy="Running"))
    assert world.step().requeue_after == 60
    world.run_all()
    world.settle()
    world.advance(59)
    assert world.step().requeue_after == 1
    world.advance(1)
    world.settle()
    assert world.outcome == ("Failed", "Failed")
    assert world.status["failure"] == {
        "reason": "DeadlineExceeded",
        "message": "the job ran longer than spec.runPolicy.activeDeadlineSeconds, 60 s",
    }
    assert world.replicas() == []


def test_success_in_the_last_moment_is_success() -> None:
    world = World(job("v1").run_policy(activeDeadlineSeconds=60))
    world.start()
    world.exit("scheduler", 0, 0)
    world.advance(61)
    world.settle()
    assert world.status["state"] == "Succeeded"


# --- others' jobs


@pytest.mark.parametrize(
    ("manager", "ours"),
    [
        ("", True),
        ("kubeflow.org/training-operator", True),
        ("dljob.operator/dljob-operator", True),
        ("kueue.x-k8s.io/multikueue", False),
    ],
)
def test_managed_by(manager: str, ours: bool) -> None:
    done = World(job("v1").run_policy(managedBy=manager)).step()
    assert (done != Plan()) is ours


def test_a_job_that_ended_under_another_operator_is_not_run_again() -> None:
    conditions = [{"type": "Created", "status": "True"}, {"type": "Succeeded", "status": "True"}]
    world = World(job("v1").status(conditions=conditions, completionTime="2020-01-01T00:00:00Z"))
    world.settle()
    assert (world.created, world.outcome) == ([], ("Done", "Succeeded"))


def test_a_job_that_ended_under_an_early_operator_is_not_run_again() -> None:
    held: dict[str, object] = {
        "phase": "Done",
        "reason": "",
        "state": "Succeeded",
        "conditions": None,
        "replicaStatuses": [],
    }
    world = World(job("v1alpha1").status(**held))
    world.settle()
    assert (world.created, world.outcome) == ([], ("Done", "Succeeded"))


# --- another framework


def test_a_made_up_framework() -> None:
    world = World(echojob(2), echo_framework())
    world.start()
    assert sorted(world.pods) == ["hello-follower-0", "hello-follower-1", "hello-leader-0"]
    assert environment_of(world.pods["hello-follower-1"], "echo") == {
        "ECHO_RANK": "2",
        "ECHO_LEADER": "hello-leader-0:2222",
    }
    world.exit("leader", 0, 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")
    assert world.conditions[-1] == ("Succeeded", "True")
