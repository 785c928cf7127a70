"""Lives of jobs whose scheduler decides: the three v1alpha1 flavors."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan
from support.builders import MXJob, mxjob
from support.fake_cluster import World, is_quiet

DIALECTS = ("v1alpha1", "fioravanzo", "mpba")


def job(flavor: str = "v1alpha1", policy: str = "OnFailure") -> MXJob:
    return mxjob().flavor(flavor).servers(1).workers(2).restart(policy)


@pytest.mark.parametrize("flavor", DIALECTS)
@pytest.mark.parametrize("policy", ["OnFailure", "Never", "Always"])
def test_the_schedulers_permanent_error_ends_the_job(flavor: str, policy: str) -> None:
    world = World(job(flavor, policy))
    world.start()
    name = world.pod("scheduler", 0)["metadata"]["name"]
    world.exit("scheduler", 0, 1, message="no such file\n")
    world.settle()
    assert world.outcome == ("Failed", "Failed")
    message = f"container mxnet of pod {name} exited with 1 (Error): no such file"
    assert world.status["reason"] == f"Error: {message}"
    assert world.status["failure"] == {
        "pod": name,
        "container": "mxnet",
        "exitCode": 1,
        "reason": "Error",
        "message": "no such file",
    }
    assert world.replicas() == (["scheduler-0"] if policy == "Never" else [])
    assert world.events[-1].type == "Warning"


@pytest.mark.parametrize("flavor", DIALECTS)
def test_the_schedulers_retryable_error_is_the_kubelets_to_cure(flavor: str) -> None:
    world = World(job(flavor))
    world.start()
    world.exit("scheduler", 0, 137)
    assert world.step() == Plan()
    world.exit("scheduler", 0, 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")


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
    world = World(job(flavor, "Never"))
    world.start()
    world.exit("scheduler", 0, code)
    world.settle()
    assert (world.status["state"] == "Running") is retried
    if retried:
        world.advance(1)
        world.settle()
        assert world.attempt("scheduler", 0) == 1


def test_out_of_memory_is_not_retried() -> None:
    world = World(job())
    world.start()
    world.exit("scheduler", 0, 137, "OOMKilled")
    world.settle()
    assert world.status["failure"]["reason"] == "OOMKilled"


# --- servers and workers


@pytest.mark.parametrize("flavor", DIALECTS)
@pytest.mark.parametrize("type_", ["server", "worker"])
def test_others_restart_with_a_growing_delay(flavor: str, type_: str) -> None:
    world = World(job(flavor, "Never"))
    world.start()
    names = {world.pod(type_, 0)["metadata"]["name"]}
    for attempt, wait in enumerate((1, 2, 4, 8)):
        world.exit(type_, 0, 1)
        counted = world.step()
        assert (counted.requeue_after, counted.deletions) == (wait, ())
        assert world.status["retries"] == {f"{type_}-0": attempt + 1}
        world.advance(wait - 0.5)
        waiting = world.step()
        assert is_quiet(waiting)
        assert waiting.requeue_after == 0.5
        world.advance(0.5)
        world.settle()
        assert world.attempt(type_, 0) == attempt + 1
        names.add(world.pod(type_, 0)["metadata"]["name"])
        world.run_all()
        world.settle()
    assert len(names) == 5, "each attempt has a name of its own"
    assert world.outcome == ("Running", "Running")
    warnings = [e for e in world.events if e.reason == "MXJobRestarting"]
    assert len(warnings) == 4
    assert "exited with 1 (Error)" in warnings[0].message


def test_the_name_that_its_peers_connect_to_stays() -> None:
    world = World(job("v1alpha1", "Never"))
    world.start()
    before = world.pod("server", 0)["spec"]["hostname"]
    world.exit("server", 0, 1)
    world.advance(10)
    world.settle()
    assert world.pod("server", 0)["spec"]["hostname"] == before


@pytest.mark.parametrize("code", [0, 1])
def test_the_scheduler_ends_the_job_while_others_fail(code: int) -> None:
    world = World(job("v1alpha1", "Never"))
    world.start()
    world.exit("worker", 0, 1)
    world.exit("scheduler", 0, code)
    world.settle()
    assert world.status["state"] == ("Failed" if code else "Succeeded")
    assert world.replicas() == ["scheduler-0", "worker-0"], "both keep their logs"


def test_a_worker_that_is_done_is_not_run_again_when_its_pod_goes() -> None:
    world = World(job())
    world.start()
    world.exit("worker", 1, 0)
    world.settle()
    assert world.status["completed"] == {"worker": "1"}
    world.user_deletes(world.pod("worker", 1)["metadata"]["name"])
    world.settle()
    assert world.replicas() == ["scheduler-0", "server-0", "worker-0"]
    assert world.status["replicas"] == "4/4"
    assert world.status["replicaStatuses"][2] == {
        "ReplicasStates": {"Running": 1, "Succeeded": 1},
        "mx_replica_type": "WORKER",
        "state": "Running",
    }


def test_a_worker_with_a_sidecar_that_fails_is_done_all_the_same() -> None:
    sidecar = {"name": "proxy", "image": "proxy:1"}
    world = World(job("v1alpha1", "Never").pod("Worker", containers=[{"name": "mxnet", "image": "x"}, sidecar]))
    world.start()
    world.exit("worker", 0, 0)
    world.pod("worker", 0)["status"]["phase"] = "Failed"
    world.settle()
    assert world.status["completed"] == {"worker": "0"}
    assert "retries" not in world.status
    assert "worker-0" in world.replicas()


def test_a_terminated_worker_that_leaves_with_0_is_not_done() -> None:
    """Told to go by somebody who deleted its pod, a well-behaved program exits with 0."""
    world = World(job())
    world.start()
    name = world.pod("worker", 0)["metadata"]["name"]
    world.user_deletes(name)
    world.exit("worker", 0, 0)
    world.step()
    assert "completed" not in world.status
    world.settle()
    assert "worker-0" in world.replicas()
    assert world.status["state"] == "Running"


def test_a_terminated_scheduler_that_leaves_with_0_has_not_succeeded() -> None:
    world = World(job())
    world.start()
    world.user_deletes(world.pod("scheduler", 0)["metadata"]["name"])
    world.exit("scheduler", 0, 0)
    world.settle()
    assert world.status["state"] == "Running"
    assert "scheduler-0" in world.replicas()


@pytest.mark.parametrize("type_", ["scheduler", "worker"])
@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_an_evicted_pod_is_replaced_at_once_and_counts_for_nothing(type_: str, policy: str) -> None:
    world = World(job("v1alpha1", policy).run_policy(backoffLimit=0))
    world.start()
    for _ in range(3):
        before = world.pod(type_, 0)["metadata"]["uid"]
        world.evict(type_, 0)
        world.settle()
        assert world.pod(type_, 0)["metadata"]["uid"] != before
        world.advance(1)
        world.run_all()
        world.settle()
    assert (world.attempt(type_, 0), world.status["state"]) == (0, "Running")
    assert "retries" not in world.status
    told = [e.message for e in world.events if e.reason == "MXJobRestarting"]
    assert len(told) == 3
    assert all("Evicted" in message for message in told)


def test_a_node_that_takes_no_pod_is_not_offered_hundreds() -> None:
    world = World(job())
    world.settle()
    for attempt in range(6):
        world.pod("worker", 0)["status"] = {"phase": "Failed", "reason": "OutOfcpu", "message": "no room"}
        world.settle()
        assert world.attempt("worker", 0) == attempt, "not before its time"
        world.advance(2**attempt)
        world.settle()
        assert world.attempt("worker", 0) == attempt + 1


# --- the limit


def test_backoff_limit_counts_new_pods() -> None:
    world = World(job("v1alpha1", "Never").run_policy(backoffLimit=2))
    world.start()
    for _ in range(2):
        world.exit("worker", 0, 1)
        world.advance(10)
        world.settle()
        world.run_all()
        world.settle()
        assert world.status["state"] == "Running"
    world.exit("worker", 0, 1, message="again")
    world.settle()
    assert world.outcome == ("Failed", "Failed")
    assert world.status["failure"]["reason"] == "BackoffLimitExceeded"
    assert world.status["failure"]["exitCode"] == 1
    assert world.status["reason"].endswith(": again")
    assert world.status["retries"] == {"worker-0": 3}
    assert "worker-0" in world.replicas(), "the last one keeps its log"


def test_backoff_limit_counts_restarts_in_place() -> None:
    world = World(job("v1alpha1", "OnFailure").run_policy(backoffLimit=2))
    world.start()
    for restarts in range(1, 4):
        world.exit("worker", restarts % 2, 1)
        world.settle()
        assert (world.status["state"] == "Failed") is (restarts == 3)


def test_backoff_limit_outlives_the_pods() -> None:
    world = World(job("v1alpha1", "Never").run_policy(backoffLimit=1))
    world.start()
    world.exit("worker", 0, 1)
    world.step()
    for name in list(world.pods):
        world.user_deletes(name)
    world.settle()
    world.run_all()
    world.exit("worker", 0, 1)
    world.settle()
    assert world.status["failure"]["reason"] == "BackoffLimitExceeded"


# --- local jobs


def local(workers: int) -> MXJob:
    return mxjob().v1alpha1().without("Scheduler").workers(workers).option(jobMode="local").restart("Never")


def test_a_local_job_ends_with_its_worker() -> None:
    world = World(local(1))
    world.start()
    assert world.replicas() == ["worker-0"]
    world.exit("worker", 0, 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")


def test_a_local_job_waits_for_all_its_workers() -> None:
    world = World(local(2))
    world.start()
    world.exit("worker", 0, 0)
    world.settle()
    assert world.status["state"] == "Running"
    world.exit("worker", 1, 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")


def test_any_worker_fails_a_local_job() -> None:
    world = World(local(2))
    world.start()
    world.exit("worker", 1, 1)
    world.settle()
    assert world.outcome == ("Failed", "Failed")


# --- the chief


def test_a_worker_as_chief() -> None:
    world = World(job().chief("WORKER", 1))
    world.start()
    world.exit("scheduler", 0, 0)
    world.exit("worker", 0, 0)
    world.settle()
    assert world.status["state"] == "Running"
    world.exit("worker", 1, 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")
