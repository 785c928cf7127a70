"""The life cycle of jobs whose scheduler is the success target: the three v1alpha1 flavors."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import losses
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import MXJob, mxjob
from support.fake_cluster import FakeCluster, is_quiet

FLAVORS = ("v1alpha1", "fioravanzo", "mpba")


def job(flavor: str = "v1alpha1", policy: str = "OnFailure") -> MXJob:
    return mxjob().flavor(flavor).servers(1).workers(2).restart(policy)


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("policy", ["OnFailure", "Never", "Always"])
def test_the_schedulers_permanent_error_ends_the_job(flavor: str, policy: str) -> None:
    fake_cluster = FakeCluster(job(flavor, policy))
    fake_cluster.start()
    name = fake_cluster.pod("scheduler", 0)["metadata"]["name"]
    fake_cluster.exit("scheduler", 0, 1, message="no such file\n")
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Failed", "Failed")
    message = f"container mxnet of pod {name} exited with 1 (Error): no such file"
    assert fake_cluster.status["reason"] == f"Error: {message}"
    assert fake_cluster.status["failure"] == {
        "pod": name,
        "container": "mxnet",
        "exitCode": 1,
        "reason": "Error",
        "message": "no such file",
    }
    assert fake_cluster.replicas() == (["scheduler-0"] if policy == "Never" else [])
    assert fake_cluster.events[-1].type == "Warning"


@pytest.mark.parametrize("flavor", FLAVORS)
def test_the_schedulers_retryable_error_is_the_kubelets_to_cure(flavor: str) -> None:
    fake_cluster = FakeCluster(job(flavor))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 137)
    before = fake_cluster.status
    assert fake_cluster.step() == Plan(status={**before, "lastLoss": fake_cluster.status["lastLoss"]})
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")


@pytest.mark.parametrize(
    ("flavor", "code", "retried"),
    [
        ("v1alpha1", 130, True),
        ("v1alpha1", 138, True),
        ("v1alpha1", 139, False),
        ("v1alpha1", 128, False),
        ("v1alpha1", 255, False),
        ("fioravanzo", 127, False),
        ("fioravanzo", 128, True),
        ("fioravanzo", 139, True),
        ("fioravanzo", 255, True),
        ("mpba", 143, True),
        ("mpba", 2, False),
    ],
)
def test_under_never_a_retryable_scheduler_gets_a_new_pod(flavor: str, code: int, retried: bool) -> None:
    fake_cluster = FakeCluster(job(flavor, "Never"))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, code)
    fake_cluster.settle()
    assert (fake_cluster.status["state"] == "Running") is retried
    if retried:
        fake_cluster.advance(1)
        fake_cluster.settle()
        assert fake_cluster.attempt("scheduler", 0) == 1


def test_out_of_memory_is_not_retried() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 137, "OOMKilled")
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "OOMKilled"


# --- servers and workers


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("type_", ["server", "worker"])
def test_others_restart_with_a_growing_delay(flavor: str, type_: str) -> None:
    fake_cluster = FakeCluster(job(flavor, "Never"))
    fake_cluster.start()
    names = {fake_cluster.pod(type_, 0)["metadata"]["name"]}
    for attempt, wait in enumerate((1, 2, 4, 8)):
        fake_cluster.exit(type_, 0, 1)
        counted = fake_cluster.step()
        assert (counted.requeue_after, counted.deletions) == (wait, ())
        assert fake_cluster.status["retries"] == {f"{type_}-0": attempt + 1}
        fake_cluster.advance(wait - 0.5)
        waiting = fake_cluster.step()
        assert is_quiet(waiting)
        assert waiting.requeue_after == 0.5
        fake_cluster.advance(0.5)
        fake_cluster.settle()
        assert fake_cluster.attempt(type_, 0) == attempt + 1
        names.add(fake_cluster.pod(type_, 0)["metadata"]["name"])
        fake_cluster.run_all()
        fake_cluster.settle()
    assert len(names) == 1, "the API server refuses a second pod of the replica, of whatever attempt"
    assert fake_cluster.outcome == ("Running", "Running")
    warnings = [e for e in fake_cluster.events if e.reason == "MXJobRestarting"]
    assert len(warnings) == 4
    assert "exited with 1 (Error)" in warnings[0].message


def test_the_name_that_its_peers_connect_to_stays() -> None:
    fake_cluster = FakeCluster(job("v1alpha1", "Never"))
    fake_cluster.start()
    before = fake_cluster.pod("server", 0)["spec"]["hostname"]
    fake_cluster.exit("server", 0, 1)
    fake_cluster.advance(10)
    fake_cluster.settle()
    assert fake_cluster.pod("server", 0)["spec"]["hostname"] == before


@pytest.mark.parametrize("code", [0, 1])
def test_the_scheduler_ends_the_job_while_others_fail(code: int) -> None:
    fake_cluster = FakeCluster(job("v1alpha1", "Never"))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.exit("scheduler", 0, code)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == ("Failed" if code else "Succeeded")
    assert fake_cluster.replicas() == ["scheduler-0", "worker-0"], "both keep their logs"


def test_a_worker_that_is_done_is_not_run_again_when_its_pod_goes() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.start()
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.status["completed"] == {"worker": "1"}
    fake_cluster.user_deletes(fake_cluster.pod("worker", 1)["metadata"]["name"])
    fake_cluster.settle()
    assert fake_cluster.replicas() == ["scheduler-0", "server-0", "worker-0"]
    assert fake_cluster.status["replicas"] == "4/4"
    assert fake_cluster.status["replicaStatuses"][2] == {
        "ReplicasStates": {"Running": 1, "Succeeded": 1},
        "mx_replica_type": "WORKER",
        "state": "Running",
    }


def test_a_worker_with_a_sidecar_that_fails_is_done_all_the_same() -> None:
    sidecar = {"name": "proxy", "image": "proxy:1"}
    fake_cluster = FakeCluster(
        job("v1alpha1", "Never").pod("Worker", containers=[{"name": "mxnet", "image": "x"}, sidecar])
    )
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.pod("worker", 0)["status"]["phase"] = "Failed"
    fake_cluster.settle()
    assert fake_cluster.status["completed"] == {"worker": "0"}
    assert "retries" not in fake_cluster.status
    assert "worker-0" in fake_cluster.replicas()


def test_a_terminated_worker_that_leaves_with_0_is_not_done() -> None:
    """A program may exit with 0 on the SIGTERM of a pod deletion."""
    fake_cluster = FakeCluster(job())
    fake_cluster.start()
    name = fake_cluster.pod("worker", 0)["metadata"]["name"]
    fake_cluster.user_deletes(name)
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.step()
    assert "completed" not in fake_cluster.status
    fake_cluster.settle()
    assert "worker-0" in fake_cluster.replicas()
    assert fake_cluster.status["state"] == "Running"


def test_a_terminated_scheduler_that_leaves_with_0_has_not_succeeded() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.start()
    fake_cluster.user_deletes(fake_cluster.pod("scheduler", 0)["metadata"]["name"])
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    assert "scheduler-0" in fake_cluster.replicas()


@pytest.mark.parametrize("type_", ["scheduler", "worker"])
@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_an_evicted_pod_is_replaced_at_once_and_counts_for_nothing(type_: str, policy: str) -> None:
    fake_cluster = FakeCluster(job("v1alpha1", policy).run_policy(backoffLimit=0))
    fake_cluster.start()
    for _ in range(3):
        before = fake_cluster.pod(type_, 0)["metadata"]["uid"]
        fake_cluster.evict(type_, 0)
        fake_cluster.settle()
        assert fake_cluster.pod(type_, 0)["metadata"]["uid"] != before
        fake_cluster.advance(1)
        fake_cluster.run_all()
        fake_cluster.settle()
    assert (fake_cluster.attempt(type_, 0), fake_cluster.status["state"]) == (0, "Running")
    assert "retries" not in fake_cluster.status
    messages = [e.message for e in fake_cluster.events if e.reason == "MXJobRestarting"]
    assert len(messages) == 3
    assert all("Evicted" in message for message in messages)


def test_a_node_that_takes_no_pod_is_not_offered_hundreds() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.settle()
    for attempt in range(6):
        fake_cluster.pod("worker", 0)["status"] = {"phase": "Failed", "reason": "OutOfcpu", "message": "no room"}
        fake_cluster.settle()
        assert fake_cluster.attempt("worker", 0) == attempt, "not before its time"
        fake_cluster.advance(2**attempt)
        fake_cluster.settle()
        assert fake_cluster.attempt("worker", 0) == attempt + 1


# --- backoffLimit


def test_backoff_limit_counts_new_pods() -> None:
    fake_cluster = FakeCluster(job("v1alpha1", "Never").run_policy(backoffLimit=2))
    fake_cluster.start()
    for _ in range(2):
        fake_cluster.exit("worker", 0, 1)
        fake_cluster.advance(10)
        fake_cluster.settle()
        fake_cluster.run_all()
        fake_cluster.settle()
        assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("worker", 0, 1, message="again")
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Failed", "Failed")
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded"
    assert fake_cluster.status["failure"]["exitCode"] == 1
    assert fake_cluster.status["reason"].endswith(": again")
    assert fake_cluster.status["retries"] == {"worker-0": 2}, "no restart follows the last failure"
    assert "worker-0" in fake_cluster.replicas(), "the last one keeps its log"


def test_backoff_limit_counts_restarts_in_place() -> None:
    fake_cluster = FakeCluster(job("v1alpha1", "OnFailure").run_policy(backoffLimit=2))
    fake_cluster.start()
    for restarts in range(1, 4):
        fake_cluster.exit("worker", restarts % 2, 1)
        fake_cluster.settle()
        assert (fake_cluster.status["state"] == "Failed") is (restarts == 3)
        fake_cluster.advance(losses.WINDOW + 1)


def test_backoff_limit_outlives_the_pods() -> None:
    fake_cluster = FakeCluster(job("v1alpha1", "Never").run_policy(backoffLimit=1))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.step()
    for name in list(fake_cluster.pods):
        fake_cluster.user_deletes(name)
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.exit("worker", 0, 1)
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded"


# --- local jobs


def local(workers: int) -> MXJob:
    return mxjob().v1alpha1().without("Scheduler").workers(workers).option(jobMode="local").restart("Never")


def test_a_local_job_ends_with_its_worker() -> None:
    fake_cluster = FakeCluster(local(1))
    fake_cluster.start()
    assert fake_cluster.replicas() == ["worker-0"]
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")


def test_a_local_job_waits_for_all_its_workers() -> None:
    fake_cluster = FakeCluster(local(2))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")


def test_any_worker_fails_a_local_job() -> None:
    fake_cluster = FakeCluster(local(2))
    fake_cluster.start()
    fake_cluster.exit("worker", 1, 1)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Failed", "Failed")


# --- the success target


def test_a_worker_as_success_target() -> None:
    fake_cluster = FakeCluster(job().chief("WORKER", 1))
    fake_cluster.start()
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")
