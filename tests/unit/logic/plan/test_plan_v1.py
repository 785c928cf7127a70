"""The life cycle of kubeflow.org/v1 jobs: the restart policy of each replica applies."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import MXJob, mxjob
from support.fake_cluster import FakeCluster


def job(policy: str | None = None) -> MXJob:
    made = mxjob("digits").v1().servers(1).workers(2)
    return made.restart(policy) if policy else made


def test_names() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.step()
    assert sorted(fake_cluster.pods) == ["digits-scheduler-0", "digits-server-0", "digits-worker-0", "digits-worker-1"]
    assert "digits-scheduler-0" in fake_cluster.services


@pytest.mark.parametrize("type_", ["scheduler", "server", "worker"])
@pytest.mark.parametrize("code", [1, 137])
def test_under_never_any_failure_fails_the_job(type_: str, code: int) -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.start()
    fake_cluster.exit(type_, 0, code)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["failure"]["pod"] == f"digits-{type_}-0"
    assert fake_cluster.status["failure"]["exitCode"] == code
    assert len(fake_cluster.pods) == 4, "cleanPodPolicy None, the default of v1"


@pytest.mark.parametrize("policy", ["OnFailure", "Always"])
def test_the_kubelet_restarts_in_place(policy: str) -> None:
    fake_cluster = FakeCluster(job(policy))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 1)
    before = fake_cluster.status
    assert fake_cluster.step() == Plan(status={**before, "lastLoss": fake_cluster.status["lastLoss"]})
    assert fake_cluster.step() == Plan()


@pytest.mark.parametrize("code", [128, 137, 255])
def test_exit_code_retryable(code: int) -> None:
    fake_cluster = FakeCluster(job("ExitCode"))
    fake_cluster.start()
    first = fake_cluster.pod("worker", 0)["metadata"]["uid"]
    fake_cluster.exit("worker", 0, code)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Restarting"
    assert fake_cluster.conditions == [("Created", "True"), ("Restarting", "True")]
    fake_cluster.advance(1)
    fake_cluster.settle()
    assert fake_cluster.pod("worker", 0)["metadata"]["name"] == "digits-worker-0", "the same name, as v1 has it"
    assert fake_cluster.pod("worker", 0)["metadata"]["uid"] != first
    assert fake_cluster.status["retries"] == {"worker-0": 1}
    fake_cluster.run_all()
    fake_cluster.settle()
    assert fake_cluster.conditions == [("Created", "True"), ("Running", "True")]


@pytest.mark.parametrize("code", [1, 2, 127])
def test_exit_code_permanent(code: int) -> None:
    fake_cluster = FakeCluster(job("ExitCode"))
    fake_cluster.start()
    fake_cluster.exit("server", 0, code)
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["exitCode"] == code


def test_exit_code_and_out_of_memory() -> None:
    """v1 has no rule for OOMKilled: exit code 137 is retryable."""
    fake_cluster = FakeCluster(job("ExitCode"))
    fake_cluster.start()
    fake_cluster.exit("worker", 0, 137, "OOMKilled")
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Restarting"


@pytest.mark.parametrize(
    ("policy", "state"),
    [("Never", "Failed"), ("OnFailure", "Restarting"), ("Always", "Restarting"), ("ExitCode", "Restarting")],
)
def test_eviction(policy: str, state: str) -> None:
    fake_cluster = FakeCluster(job(policy))
    fake_cluster.start()
    fake_cluster.evict("worker", 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == state
    if state == "Failed":
        assert fake_cluster.status["failure"]["reason"] == "Evicted"


def test_a_drain_under_never() -> None:
    """The other processes would wait for ever for a new one of that rank."""
    fake_cluster = FakeCluster(job("Never"))
    fake_cluster.start()
    pod = fake_cluster.pod("worker", 0)
    pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
    fake_cluster.user_deletes(pod["metadata"]["name"])
    fake_cluster.settle()
    fake_cluster.kubelet_deletes()
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "DisruptionTarget"
    assert "worker-0" not in fake_cluster.replicas()


def test_replica_statuses() -> None:
    fake_cluster = FakeCluster(job())
    fake_cluster.start()
    counts = {
        t: {k: v for k, v in s.items() if k != "selector"} for t, s in fake_cluster.status["replicaStatuses"].items()
    }
    assert counts == {"Scheduler": {"active": 1}, "Server": {"active": 1}, "Worker": {"active": 2}}
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    counts = {
        t: {k: v for k, v in s.items() if k != "selector"} for t, s in fake_cluster.status["replicaStatuses"].items()
    }
    assert counts == {"Scheduler": {"succeeded": 1}, "Server": {"succeeded": 1}, "Worker": {"succeeded": 2}}


def test_the_state_is_the_newest_condition() -> None:
    fake_cluster = FakeCluster(job("ExitCode"))
    states = []
    fake_cluster.step()
    states.append(fake_cluster.status["state"])
    fake_cluster.run_all()
    fake_cluster.settle()
    states.append(fake_cluster.status["state"])
    fake_cluster.exit("worker", 0, 143)
    fake_cluster.settle()
    states.append(fake_cluster.status["state"])
    fake_cluster.advance(1)
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()
    states.append(fake_cluster.status["state"])
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.settle()
    states.append(fake_cluster.status["state"])
    assert states == ["Created", "Running", "Restarting", "Running", "Succeeded"]


@pytest.mark.parametrize(("limit", "survives"), [(0, 0), (2, 2)])
def test_backoff_limit_counts_replacement_pods(limit: int, survives: int) -> None:
    """training-operator forgets the restarts of deleted pods, and restarts forever."""
    fake_cluster = FakeCluster(job("ExitCode").run_policy(backoffLimit=limit))
    fake_cluster.start()
    for restarts in range(limit + 1):
        assert fake_cluster.status["state"] == "Running", restarts
        fake_cluster.exit("worker", 0, 137)
        fake_cluster.advance(600)
        fake_cluster.settle()
        fake_cluster.run_all()
        fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded"
    assert fake_cluster.attempt("worker", 0) == survives


def test_tuning_needs_no_scheduler_and_ends_with_its_tuners() -> None:
    made = mxjob().v1().without("Scheduler").option(jobMode="MXTune")
    fake_cluster = FakeCluster(made.replicas("TunerTracker", 1).replicas("TunerServer", 2).replicas("Tuner", 2))
    fake_cluster.start()
    assert len(fake_cluster.pods) == 5
    fake_cluster.exit("tuner", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("tuner", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Done", "Succeeded")
