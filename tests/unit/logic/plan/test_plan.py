"""The life cycle of jobs, as far as all flavors have it in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import clean_pod_policy
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Fact, Plan
from support.builders import NOW, MXJob, echo_framework, echojob, environment_of, mxjob
from support.fake_cluster import FakeCluster, is_quiet

FLAVORS = ("v1", "v1alpha1", "fioravanzo", "mpba")


def job(flavor: str) -> MXJob:
    return mxjob().flavor(flavor).servers(2).workers(2).restart("OnFailure")


def image_of_workers(spec: Any, image: str) -> None:
    spec["mxReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = image


# --- success


@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_first_reconcile_creates_everything(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    done = fake_cluster.step()
    assert len(done.pods) == 5
    assert len(done.services) == (2 if flavor == "v1" else 1)
    assert done.deletions == ()
    assert done.status
    assert (done.status["phase"], done.status["replicas"]) == ("Creating", "0/5")
    (event,) = done.events
    assert (event.type, event.reason) == ("Normal", "SuccessfulCreatePod")
    assert event.message == "Created 5 of 5 pods: " + ", ".join(p["metadata"]["name"] for p in done.pods)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_with_nothing_new_there_is_nothing_to_do(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    fake_cluster.step()
    assert fake_cluster.step() == Plan()
    fake_cluster.run_all()
    fake_cluster.settle()
    fake_cluster.advance(3600)
    assert fake_cluster.step() == Plan()


@pytest.mark.parametrize("flavor", FLAVORS)
def test_to_the_end(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    fake_cluster.start()
    assert fake_cluster.outcome == ("Running", "Running")
    assert fake_cluster.status["replicas"] == "5/5"
    fake_cluster.advance(60)
    fake_cluster.exit("scheduler", 0, 0)

    ending = fake_cluster.step()
    assert not ending.deletions, "first it is written down that the job has ended"
    clean_at_once = flavor == "v1"  # v1's default keeps all pods
    assert fake_cluster.outcome == ("Done" if clean_at_once else "CleanUp", "Succeeded")
    assert ending.requeue_after == (None if clean_at_once else 0)
    assert fake_cluster.status["completionTime"] == fake_cluster.time

    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")
    assert (fake_cluster.replicas() == ["scheduler-0"]) != clean_at_once
    assert bool(fake_cluster.services) == clean_at_once
    assert [e.reason for e in fake_cluster.events] == ["SuccessfulCreatePod", "MXJobRunning", "MXJobSucceeded"]
    assert fake_cluster.conditions == [("Created", "True"), ("Running", "False"), ("Succeeded", "True")]
    assert fake_cluster.status["completed"] == {"scheduler": "0"}
    assert fake_cluster.step() == Plan()


@pytest.mark.parametrize("flavor", FLAVORS)
def test_phase_running_needs_every_replica(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    fake_cluster.settle()
    fake_cluster.run_all()
    pod = fake_cluster.pod("worker", 1)
    pod["status"] = {"phase": "Pending"}
    fake_cluster.settle()
    assert (fake_cluster.status["phase"], fake_cluster.status["replicas"]) == ("Creating", "4/5")
    fake_cluster.run_all()
    fake_cluster.settle()
    assert fake_cluster.status["phase"] == "Running"


def test_what_keeps_a_pod_from_starting_is_the_reason_as_long_as_it_does() -> None:
    fake_cluster = FakeCluster(job("v1"))
    fake_cluster.settle()
    fake_cluster.run_all()
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    started = fake_cluster.pod("worker", 1)["status"]
    fake_cluster.pod("worker", 1)["status"] = {
        "phase": "Pending",
        "containerStatuses": [{"name": "mxnet", "restartCount": 0, "state": {"waiting": waiting}}],
    }
    fake_cluster.settle()
    assert fake_cluster.status["reason"] == "digits-worker-1: ImagePullBackOff: no such image"
    fake_cluster.pod("worker", 1)["status"] = started
    fake_cluster.settle()
    assert fake_cluster.status["reason"] == ""


@pytest.mark.parametrize(("workers", "named"), [(4, "{}, {}, {}, {}, {}"), (5, "{}, {}, {}, {}, {}, ...")])
def test_the_event_names_at_most_five_pods(workers: int, named: str) -> None:
    fake_cluster = FakeCluster(mxjob().v1().workers(workers))
    fake_cluster.step()
    names = named.format("digits-scheduler-0", *(f"digits-worker-{n}" for n in range(4)))
    assert [e.message for e in fake_cluster.events] == [f"Created {workers + 1} of {workers + 1} pods: {names}"]


def gone(fake_cluster: FakeCluster) -> None:
    fake_cluster.user_deletes("digits-worker-1")
    fake_cluster.kubelet_deletes()


def gone_and_another_terminates(fake_cluster: FakeCluster) -> None:
    gone(fake_cluster)
    fake_cluster.user_deletes("digits-worker-0")


def replaced_after_an_error(fake_cluster: FakeCluster) -> None:
    fake_cluster.exit("worker", 1, 137)
    fake_cluster.settle()
    fake_cluster.advance(60)
    fake_cluster.step()


@pytest.mark.parametrize(
    ("phase", "loss", "message"),
    [
        ("Running", gone, "1 of 3 pods: digits-worker-1"),
        ("Creating", gone, "3 of 3 pods: digits-scheduler-0, digits-worker-0, digits-worker-1"),
        ("Creating", gone_and_another_terminates, "2 of 3 pods: digits-scheduler-0, digits-worker-1"),
        ("Creating", replaced_after_an_error, "1 of 3 pods: digits-worker-1"),
    ],
)
def test_the_event_on_a_new_pod_names_the_others_until_the_job_runs(
    phase: str, loss: Callable[[FakeCluster], None], message: str
) -> None:
    """The pods of one job may be created by several reconciles."""
    fake_cluster = FakeCluster(mxjob().v1().workers(2).restart("ExitCode"))
    fake_cluster.settle()
    for index in (0, 1):
        fake_cluster.run("worker", index)
    if phase == "Running":
        fake_cluster.run_all()
    fake_cluster.settle()
    assert fake_cluster.status["phase"] == phase
    loss(fake_cluster)
    fake_cluster.step()
    assert [e.message for e in fake_cluster.events if e.reason == "SuccessfulCreatePod"][1:] == [f"Created {message}"]


@pytest.mark.parametrize("policy", ["All", "Running", "None"])
@pytest.mark.parametrize("flavor", ["v1", "v1alpha1"])
def test_clean_pod_policy(flavor: str, policy: str) -> None:
    fake_cluster = FakeCluster(job(flavor).run_policy(cleanPodPolicy=policy))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    left = {"All": 0, "Running": 2, "None": 5}[policy]
    assert len(fake_cluster.pods) == left
    assert bool(fake_cluster.services) == (policy == "None")
    assert fake_cluster.outcome == ("Done", "Succeeded")


def test_cleaning_up_waits_for_what_terminates() -> None:
    fake_cluster = FakeCluster(job("v1alpha1"))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.step()
    fake_cluster.advance(clean_pod_policy.GRACE_PERIOD)
    for _ in range(3):
        fake_cluster.step()
    assert fake_cluster.outcome == ("CleanUp", "Succeeded")
    assert is_quiet(fake_cluster.step())
    fake_cluster.kubelet_deletes()
    fake_cluster.step()
    assert fake_cluster.outcome == ("Done", "Succeeded")


def test_replicas_that_exit_with_the_success_target_keep_their_logs() -> None:
    """The kubelet reports the scheduler's exit just before the workers'."""
    fake_cluster = FakeCluster(job("v1alpha1"))
    fake_cluster.start()
    before = fake_cluster.replicas()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.step()
    assert fake_cluster.step().requeue_after == clean_pod_policy.GRACE_PERIOD
    for type_, index in (replica.rsplit("-", 1) for replica in before if replica != "scheduler-0"):
        assert fake_cluster.outcome == ("CleanUp", "Succeeded")
        assert is_quiet(fake_cluster.step()), "names and servers stay for the replicas that still run"
        fake_cluster.exit(type_, int(index), 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")
    assert fake_cluster.replicas() == before
    assert not fake_cluster.services
    assert fake_cluster.now == NOW


def test_a_job_kept_for_less_is_not_waited_for() -> None:
    fake_cluster = FakeCluster(job("v1alpha1").run_policy(ttlSecondsAfterFinished=2))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.step()
    assert fake_cluster.step().requeue_after == 2
    fake_cluster.advance(2)
    assert fake_cluster.step().delete_job


# --- deadlines


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1"])
def test_time_to_live(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor).run_policy(ttlSecondsAfterFinished=60))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    ended = fake_cluster.now
    last = fake_cluster.settle()[-1]
    assert last.requeue_after == 60 - (fake_cluster.now - ended).total_seconds()
    fake_cluster.advance(last.requeue_after - 1)
    assert fake_cluster.step().requeue_after == 1
    assert not fake_cluster.is_deleted
    fake_cluster.advance(1)
    assert fake_cluster.step() == Plan(delete_job=True)


def test_time_to_live_of_0() -> None:
    fake_cluster = FakeCluster(job("v1").run_policy(ttlSecondsAfterFinished=0))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.step()
    assert fake_cluster.step().delete_job
    assert fake_cluster.outcome == ("Done", "Succeeded"), "the result is reported before the job is deleted"


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1"])
def test_deadline(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor).run_policy(activeDeadlineSeconds=60, cleanPodPolicy="Running"))
    assert fake_cluster.step().requeue_after == 60
    fake_cluster.run_all()
    fake_cluster.settle()
    fake_cluster.advance(59)
    assert fake_cluster.step().requeue_after == 1
    fake_cluster.advance(1)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Failed", "Failed")
    assert fake_cluster.status["failure"] == {
        "reason": "DeadlineExceeded",
        "message": "the job was active for longer than spec.runPolicy.activeDeadlineSeconds, 60 s",
    }
    assert fake_cluster.replicas() == []


def test_success_in_the_last_moment_is_success() -> None:
    fake_cluster = FakeCluster(job("v1").run_policy(activeDeadlineSeconds=60))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.advance(61)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"


# --- jobs of other operators


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
    done = FakeCluster(job("v1").run_policy(managedBy=manager)).step()
    assert (done != Plan()) is ours


def test_a_job_that_ended_under_another_operator_is_not_run_again() -> None:
    conditions = [{"type": "Created", "status": "True"}, {"type": "Succeeded", "status": "True"}]
    fake_cluster = FakeCluster(job("v1").status(conditions=conditions, completionTime="2020-01-01T00:00:00Z"))
    fake_cluster.settle()
    assert (fake_cluster.created, fake_cluster.outcome) == ([], ("Done", "Succeeded"))


def test_a_job_that_ended_under_an_early_operator_is_not_run_again() -> None:
    held: dict[str, object] = {
        "phase": "Done",
        "reason": "",
        "state": "Succeeded",
        "conditions": None,
        "replicaStatuses": [],
    }
    fake_cluster = FakeCluster(job("v1alpha1").status(**held))
    fake_cluster.settle()
    assert (fake_cluster.created, fake_cluster.outcome) == ([], ("Done", "Succeeded"))


# --- restarts


def test_a_replica_that_restarted_alone_counts_beside_the_others() -> None:
    fake_cluster = FakeCluster(mxjob().v1().workers(2).restart("ExitCode"))
    fake_cluster.start()
    replaced_after_an_error(fake_cluster)
    fake_cluster.start()
    assert (fake_cluster.attempt("worker", 1), fake_cluster.status["replicas"]) == (1, "3/3")


def test_pods_of_an_earlier_attempt_of_the_whole_job_do_not_count() -> None:
    fake_cluster = FakeCluster(mxjob().v1().workers(2).restart("OnFailure").run_policy(restartScope="Job"))
    fake_cluster.start()
    fake_cluster.exit("worker", 1, 1)
    fake_cluster.step()
    fake_cluster.step()
    assert (len(fake_cluster.pods), fake_cluster.status["replicas"]) == (3, "0/3")


def test_a_rule_restarts_all_replicas_of_a_job_that_otherwise_restarts_single_ones() -> None:
    rule = {"action": "RestartJob", "onExitCodes": {"operator": "In", "values": [3]}}
    made = mxjob().v1().workers(2).restart("Never").run_policy(podFailurePolicy={"rules": [rule]})
    fake_cluster = FakeCluster(made)
    fake_cluster.start()
    before = {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}
    fake_cluster.exit("worker", 1, 3)
    fake_cluster.settle()
    fake_cluster.advance(100)
    fake_cluster.start()
    assert (fake_cluster.status["attempt"], fake_cluster.status["replicas"]) == (1, "3/3")
    assert not before & {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}


@pytest.mark.parametrize(
    ("event", "presumes"),
    [
        (lambda cluster: cluster.exit("worker", 1, 130), False),
        (lambda cluster: cluster.evict("worker", 1), False),
        (lambda cluster: cluster.edit(lambda spec: image_of_workers(spec, "train:2")), True),
        (lambda cluster: cluster.edit(lambda spec: spec.update(runPolicy={"suspend": True})), True),
    ],
    ids=["failure", "eviction", "edit", "suspension"],
)
def test_only_deletions_for_another_spec_presume_that_the_spec_is_current(
    event: Callable[[FakeCluster], object], presumes: bool
) -> None:
    """For these the operator reads the job from the API server, not from its cache."""
    fake_cluster = FakeCluster(mxjob().v1().workers(2).restart("ExitCode"))
    fake_cluster.start()
    event(fake_cluster)
    plans = fake_cluster.settle()
    fake_cluster.advance(100)
    plans += fake_cluster.settle()
    assert {bool(plan.presumed(Fact.SPEC_IS_CURRENT)) for plan in plans if plan.deletions} == {presumes}


def test_the_hash_of_a_spec_is_the_same_in_all_releases() -> None:
    """With another one, an upgrade of the operator would restart the replicas of all jobs."""
    fake_cluster = FakeCluster(mxjob().v1().servers(1).workers(2))
    fake_cluster.step()
    assert fake_cluster.status["specHash"] == "68a6fed4a6789d01"


def test_completed_replicas_of_a_type_that_the_job_does_not_have_are_dropped() -> None:
    fake_cluster = FakeCluster(mxjob().v1().workers(2).status(phase="Creating", completed={"server": "0"}))
    fake_cluster.step()
    assert "completed" not in fake_cluster.status


# --- another framework


def test_a_made_up_framework() -> None:
    fake_cluster = FakeCluster(echojob(2), echo_framework())
    fake_cluster.start()
    assert sorted(fake_cluster.pods) == ["hello-follower-0", "hello-follower-1", "hello-leader-0"]
    assert environment_of(fake_cluster.pods["hello-follower-1"], "echo") == {
        "ECHO_RANK": "2",
        "ECHO_LEADER": "hello-leader-0:2222",
    }
    fake_cluster.exit("leader", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")
    assert fake_cluster.conditions[-1] == ("Succeeded", "True")
