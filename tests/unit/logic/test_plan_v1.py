"""Lives of kubeflow.org/v1 jobs: each replica by its restart policy."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan
from support.builders import MXJob, mxjob
from support.fake_cluster import World


def job(policy: str | None = None) -> MXJob:
    made = mxjob("digits").v1().servers(1).workers(2)
    return made.restart(policy) if policy else made


def test_names() -> None:
    world = World(job())
    world.step()
    assert sorted(world.pods) == ["digits-scheduler-0", "digits-server-0", "digits-worker-0", "digits-worker-1"]
    assert "digits-scheduler-0" in world.services


@pytest.mark.parametrize("type_", ["scheduler", "server", "worker"])
@pytest.mark.parametrize("code", [1, 137])
def test_under_never_any_failure_is_the_jobs(type_: str, code: int) -> None:
    world = World(job())
    world.start()
    world.exit(type_, 0, code)
    world.settle()
    assert world.status["state"] == "Failed"
    assert world.status["failure"]["pod"] == f"digits-{type_}-0"
    assert world.status["failure"]["exitCode"] == code
    assert len(world.pods) == 4, "cleanPodPolicy None, the default of v1"


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_the_kubelet_restarts_in_place(policy: str) -> None:
    world = World(job(policy))
    world.start()
    world.exit("worker", 0, 1)
    assert world.step() == Plan()


@pytest.mark.parametrize("code", [128, 137, 255])
def test_exit_code_retryable(code: int) -> None:
    world = World(job("ExitCode"))
    world.start()
    first = world.pod("worker", 0)["metadata"]["uid"]
    world.exit("worker", 0, code)
    world.settle()
    assert world.status["state"] == "Restarting"
    assert world.conditions == [("Created", "True"), ("Restarting", "True")]
    world.advance(1)
    world.settle()
    assert world.pod("worker", 0)["metadata"]["name"] == "digits-worker-0", "the same name, as v1 has it"
    assert world.pod("worker", 0)["metadata"]["uid"] != first
    assert world.status["retries"] == {"worker-0": 1}
    world.run_all()
    world.settle()
    assert world.conditions == [("Created", "True"), ("Running", "True")]


@pytest.mark.parametrize("code", [1, 2, 127])
def test_exit_code_permanent(code: int) -> None:
    world = World(job("ExitCode"))
    world.start()
    world.exit("server", 0, code)
    world.settle()
    assert world.status["failure"]["exitCode"] == code


def test_exit_code_and_out_of_memory() -> None:
    """v1 has no rule of its own for it: 137 is retryable."""
    world = World(job("ExitCode"))
    world.start()
    world.exit("worker", 0, 137, "OOMKilled")
    world.settle()
    assert world.status["state"] == "Restarting"


@pytest.mark.parametrize(
    ("policy", "state"),
    [("Never", "Failed"), ("OnFailure", "Restarting"), ("Always", "Restarting"), ("ExitCode", "Restarting")],
)
def test_eviction(policy: str, state: str) -> None:
    world = World(job(policy))
    world.start()
    world.evict("worker", 0)
    world.settle()
    assert world.status["state"] == state
    if state == "Failed":
        assert world.status["failure"]["reason"] == "Evicted"


def test_replica_statuses() -> None:
    world = World(job())
    world.start()
    counts = {t: {k: v for k, v in s.items() if k != "selector"} for t, s in world.status["replicaStatuses"].items()}
    assert counts == {"Scheduler": {"active": 1}, "Server": {"active": 1}, "Worker": {"active": 2}}
    world.exit("worker", 0, 0)
    world.exit("scheduler", 0, 0)
    world.settle()
    counts = {t: {k: v for k, v in s.items() if k != "selector"} for t, s in world.status["replicaStatuses"].items()}
    assert counts == {"Scheduler": {"succeeded": 1}, "Server": {"succeeded": 1}, "Worker": {"succeeded": 2}}


def test_the_state_is_the_newest_condition() -> None:
    world = World(job("ExitCode"))
    states = []
    world.step()
    states.append(world.status["state"])
    world.run_all()
    world.settle()
    states.append(world.status["state"])
    world.exit("worker", 0, 143)
    world.settle()
    states.append(world.status["state"])
    world.advance(1)
    world.settle()
    world.run_all()
    world.settle()
    states.append(world.status["state"])
    world.exit("scheduler", 0, 0)
    world.settle()
    states.append(world.status["state"])
    assert states == ["Created", "Running", "Restarting", "Running", "Succeeded"]


@pytest.mark.parametrize(("limit", "survives"), [(0, 0), (2, 2)])
def test_backoff_limit_holds_for_pods_that_are_made_anew(limit: int, survives: int) -> None:
    """The peer forgets the restarts of a pod that it deletes, and restarts for ever."""
    world = World(job("ExitCode").run_policy(backoffLimit=limit))
    world.start()
    for restarts in range(limit + 1):
        assert world.status["state"] == "Running", restarts
        world.exit("worker", 0, 137)
        world.advance(600)
        world.settle()
        world.run_all()
        world.settle()
    assert world.status["failure"]["reason"] == "BackoffLimitExceeded"
    assert world.attempt("worker", 0) == survives


def test_tuning_needs_no_scheduler_and_ends_with_its_tuners() -> None:
    made = mxjob().v1().without("Scheduler").option(jobMode="MXTune")
    world = World(made.replicas("TunerTracker", 1).replicas("TunerServer", 2).replicas("Tuner", 2))
    world.start()
    assert len(world.pods) == 5
    world.exit("tuner", 0, 0)
    world.settle()
    assert world.status["state"] == "Running"
    world.exit("tuner", 1, 0)
    world.settle()
    assert world.outcome == ("Done", "Succeeded")
