"""podFailurePolicy and maxRestartsPerReplica in the life of a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import SpecHashes, TypeHashes
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import restart_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.clean_pod_policy import GRACE_PERIOD
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import (
    CAFFE2,
    JAX,
    MXNET,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    MXJob,
    Resource,
    caffe2job,
    jaxjob,
    mxjob,
    observed,
    pod_of,
    pytorchjob,
    tfjob,
    xgboostjob,
)
from support.fake_cluster import FakeCluster

DISRUPTION = {"onPodConditions": [{"type": "DisruptionTarget"}]}
EVERYONE = ["scheduler-0", "server-0", "worker-0", "worker-1"]


def on_codes(*values: int, operator: str = "In") -> dict[str, Any]:
    return {"onExitCodes": {"operator": operator, "values": list(values)}}


def rule(action: str, requirement: dict[str, Any]) -> dict[str, Any]:
    return {"action": action, **requirement}


def job_with(*rules: dict[str, Any], restart: str = "Never", **run_policy: Any) -> MXJob:
    job = mxjob().v1().servers(1).workers(2).restart(restart)
    return job.run_policy(podFailurePolicy={"rules": list(rules)}, **run_policy)


def running(job: MXJob | Resource, framework: Framework = MXNET) -> FakeCluster:
    fake_cluster = FakeCluster(job, framework)
    fake_cluster.start()
    return fake_cluster


def uid(fake_cluster: FakeCluster, type_: str, index: int = 0) -> str:
    return str(fake_cluster.pod(type_, index)["metadata"]["uid"])


def go_on(fake_cluster: FakeCluster) -> None:
    """Let every delay pass, and the new pods run."""
    fake_cluster.settle()
    fake_cluster.advance(400)
    fake_cluster.settle()
    fake_cluster.run_all()
    fake_cluster.settle()


def drain(fake_cluster: FakeCluster, type_: str, index: int) -> None:
    """Delete a running pod like the eviction API: the condition, then the grace period."""
    pod = fake_cluster.pod(type_, index)
    pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
    fake_cluster.user_deletes(pod["metadata"]["name"])


def restarts(fake_cluster: FakeCluster) -> list[str]:
    return [e.message for e in fake_cluster.events if e.reason == "MXJobRestarting"]


# --- FailJob


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "ExitCode"])
def test_fail_job(policy: str) -> None:
    fake_cluster = running(job_with(rule("Count", on_codes(9)), rule("FailJob", on_codes(137)), restart=policy))
    fake_cluster.exit("server", 0, 137, "Error", "no more memory")
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert "retries" not in fake_cluster.status
    message = (
        "container mxnet of pod digits-server-0 exited with 137 (Error), for which "
        "spec.runPolicy.podFailurePolicy.rules[1] has the action FailJob: no more memory"
    )
    assert fake_cluster.status["reason"] == f"PodFailurePolicy: {message}"
    assert fake_cluster.status["failure"] == {
        "pod": "digits-server-0",
        "container": "mxnet",
        "exitCode": 137,
        "reason": "PodFailurePolicy",
        "message": "no more memory",
    }
    assert [(e.type, e.message) for e in fake_cluster.events if e.reason == "MXJobFailed"] == [("Warning", message)]


def test_fail_job_of_a_list_layout_where_servers_otherwise_restart() -> None:
    rules = [rule("FailJob", on_codes(3))]
    made = mxjob().v1alpha1().servers(1).workers(1).run_policy(podFailurePolicy={"rules": rules})
    fake_cluster = running(made.restart("OnFailure"))
    fake_cluster.exit("server", 0, 3)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Failed", "Failed")


def test_fail_job_by_a_condition_of_a_pod_that_a_drain_deletes() -> None:
    fake_cluster = running(job_with(rule("FailJob", DISRUPTION), restart="OnFailure"))
    drain(fake_cluster, "worker", 1)
    fake_cluster.settle()
    assert fake_cluster.status["reason"] == (
        "PodFailurePolicy: pod digits-worker-1 has the condition DisruptionTarget, for which "
        "spec.runPolicy.podFailurePolicy.rules[0] has the action FailJob"
    )
    assert fake_cluster.status["failure"]["pod"] == "digits-worker-1"
    assert "retries" not in fake_cluster.status


def test_the_first_rule_decides() -> None:
    rules = (rule("Restart", on_codes(3)), rule("FailJob", on_codes(3)))
    first, second = running(job_with(*rules)), running(job_with(*reversed(rules)))
    for fake_cluster in (first, second):
        fake_cluster.exit("worker", 0, 3)
        go_on(fake_cluster)
    assert (first.status["state"], second.status["state"]) == ("Running", "Failed")


def test_success_comes_before_a_rule() -> None:
    fake_cluster = running(job_with(rule("FailJob", on_codes(3))))
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.advance(GRACE_PERIOD + 1)
    fake_cluster.exit("worker", 0, 3)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"


def test_a_rule_fails_a_job_whose_workers_are_about_to_end() -> None:
    fake_cluster = running(job_with(rule("FailJob", on_codes(3)), restart="OnFailure"))
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.step()
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("worker", 0, 3)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"


# --- Restart


def test_restart_whatever_the_restart_policy_says() -> None:
    fake_cluster = running(job_with(rule("Restart", on_codes(3))))
    before, others = uid(fake_cluster, "worker", 1), [uid(fake_cluster, t) for t in ("scheduler", "server", "worker")]
    fake_cluster.exit("worker", 1, 3)
    fake_cluster.settle()
    assert fake_cluster.status["retries"] == {"worker-1": 1}
    assert uid(fake_cluster, "worker", 1) == before  # the delay
    go_on(fake_cluster)
    assert uid(fake_cluster, "worker", 1) != before
    assert [uid(fake_cluster, t) for t in ("scheduler", "server", "worker")] == others
    assert (fake_cluster.attempt("worker", 1), fake_cluster.status["retries"]) == (1, {"worker-1": 1})
    (message,) = restarts(fake_cluster)
    assert message.endswith(
        "digits-worker-1; container mxnet of pod digits-worker-1 exited with 3 (Error), for which "
        "spec.runPolicy.podFailurePolicy.rules[0] has the action Restart"
    )


def test_restart_counts_for_the_backoff_limit() -> None:
    fake_cluster = running(job_with(rule("Restart", on_codes(3)), backoffLimit=1))
    for _ in range(2):
        fake_cluster.exit("worker", 1, 3)
        go_on(fake_cluster)
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded"


def test_another_code_is_handled_by_the_restart_policy() -> None:
    fake_cluster = running(job_with(rule("Restart", on_codes(3))))
    fake_cluster.exit("worker", 1, 4)
    fake_cluster.settle()
    assert (fake_cluster.status["state"], fake_cluster.status["failure"]["reason"]) == ("Failed", "Error")


def test_the_kubelet_restarts_nothing() -> None:
    """Its restarts would bypass the rules."""
    fake_cluster = running(job_with(rule("FailJob", on_codes(3)), restart="OnFailure"))
    assert {pod["spec"]["restartPolicy"] for pod in fake_cluster.pods.values()} == {"Never"}
    fake_cluster.exit("worker", 1, 4)
    go_on(fake_cluster)
    assert (fake_cluster.status["state"], fake_cluster.status["retries"]) == ("Running", {"worker-1": 1})


@pytest.mark.parametrize(("policy", "restarted"), [("OnFailure", True), ("Never", False), ("ExitCode", False)])
def test_the_first_rules_of_a_running_job_restart_what_the_kubelet_would(policy: str, restarted: bool) -> None:
    job = mxjob().v1().servers(1).workers(2).restart(policy)
    fake_cluster = running(job)
    before = uid(fake_cluster, "worker")
    for rules in ([rule("FailJob", on_codes(3))], [rule("Restart", on_codes(3))]):
        fake_cluster.edit(lambda spec, r=rules: spec.setdefault("runPolicy", {}).update(podFailurePolicy={"rules": r}))
        go_on(fake_cluster)
        assert (uid(fake_cluster, "worker") != before) == restarted
        before, restarted = uid(fake_cluster, "worker"), False  # other rules apply to the same pods
    fake_cluster.exit("worker", 0, 3)
    go_on(fake_cluster)
    assert fake_cluster.status["retries"] == {"worker-0": 1}


# --- Ignore


def test_ignore_does_not_count() -> None:
    fake_cluster = running(job_with(rule("Ignore", on_codes(3)), backoffLimit=0, maxRestartsPerReplica=0))
    for times in (1, 2, 3):
        before = uid(fake_cluster, "worker", 1)
        fake_cluster.exit("worker", 1, 3)
        fake_cluster.settle()
        assert uid(fake_cluster, "worker", 1) == before  # it is delayed like any other restart
        go_on(fake_cluster)
        assert uid(fake_cluster, "worker", 1) != before
        assert fake_cluster.status["ignoredRetries"] == {"worker-1": times}
        assert fake_cluster.attempt("worker", 1) == times
    assert (fake_cluster.status["state"], fake_cluster.status.get("retries")) == ("Running", None)
    assert "rules[0] has the action Ignore" in restarts(fake_cluster)[-1]


def test_the_delay_grows_with_ignored_failures() -> None:
    fake_cluster = running(job_with(rule("Ignore", on_codes(3))))
    waits = []
    for _ in range(3):
        fake_cluster.exit("worker", 1, 3)
        fake_cluster.settle()
        waits.append(fake_cluster.planned().requeue_after)
        go_on(fake_cluster)
    assert waits == [1, 2, 4]


def test_ignored_and_counted_failures_of_one_replica() -> None:
    fake_cluster = running(job_with(rule("Ignore", on_codes(3)), rule("Restart", on_codes(4))))
    for code in (3, 4, 4, 3, 4):
        fake_cluster.exit("worker", 1, code)
        go_on(fake_cluster)
    assert (fake_cluster.status["retries"], fake_cluster.status["ignoredRetries"]) == ({"worker-1": 3}, {"worker-1": 2})
    assert fake_cluster.attempt("worker", 1) == 5


def test_ignore_of_a_disruption_under_never() -> None:
    """Without the rule the job fails."""
    for rules, state in (((rule("Ignore", DISRUPTION),), "Running"), ((rule("Restart", on_codes(3)),), "Failed")):
        fake_cluster = running(job_with(*rules))
        fake_cluster.evict("worker", 1)
        go_on(fake_cluster)
        assert fake_cluster.status["state"] == state
        assert not {"retries", "ignoredRetries"} & set(fake_cluster.status)


# --- Count


def test_count_does_what_the_restart_policy_says() -> None:
    states = []
    for policy in ("Never", "OnFailure"):
        fake_cluster = running(job_with(rule("Count", on_codes(3)), restart=policy))
        fake_cluster.exit("worker", 1, 3)
        go_on(fake_cluster)
        states.append((fake_cluster.status["state"], fake_cluster.status.get("retries")))
    assert states == [("Failed", None), ("Running", {"worker-1": 1})]


@pytest.mark.parametrize("action", ["Count", "Restart"])
def test_a_disruption_can_count(action: str) -> None:
    fake_cluster = running(job_with(rule(action, DISRUPTION), restart="OnFailure"))
    fake_cluster.evict("worker", 1)
    go_on(fake_cluster)
    assert (fake_cluster.status["retries"], fake_cluster.attempt("worker", 1)) == ({"worker-1": 1}, 1)


# --- a drain, whose pods leave no other trace


@pytest.mark.parametrize(
    ("action", "retries"), [("Count", {"worker-1": 1}), ("Restart", {"worker-1": 1}), ("Ignore", None)]
)
def test_a_drained_pod_counts_once(action: str, retries: dict[str, int] | None) -> None:
    fake_cluster = running(job_with(rule(action, DISRUPTION), restart="OnFailure"))
    drain(fake_cluster, "worker", 1)
    for _ in range(3):
        fake_cluster.step()  # while it terminates
        assert fake_cluster.status.get("retries") == retries
    fake_cluster.exit("worker", 1, 143)
    fake_cluster.step()
    go_on(fake_cluster)
    assert fake_cluster.status.get("retries") == retries
    assert fake_cluster.replicas() == EVERYONE
    assert fake_cluster.attempt("worker", 1) == int(retries is not None)
    assert len(restarts(fake_cluster)) == int(retries is not None)


@pytest.mark.parametrize("action", ["Count", "Restart"])
def test_a_drained_pod_is_reported_once(action: str) -> None:
    """Other changes of the status while it terminates do not bring its Event again."""
    fake_cluster = running(job_with(rule(action, DISRUPTION), restart="OnFailure"))
    drain(fake_cluster, "worker", 1)
    fake_cluster.step()
    assert len(restarts(fake_cluster)) == 1
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.step()
    assert fake_cluster.status["completed"] == {"worker": "0"}
    assert len(restarts(fake_cluster)) == 1


def test_a_drained_pod_of_an_earlier_attempt_does_not_lower_the_count() -> None:
    """The cache has the pod still, and the status that counts the failures of its successors."""
    fake_cluster = running(job_with(rule("Count", DISRUPTION), restart="OnFailure"))
    drain(fake_cluster, "worker", 1)
    fake_cluster.resource["status"] = {**fake_cluster.status, "retries": {"worker-1": 3}}
    planned = fake_cluster.planned()
    assert planned.status is not None
    assert (planned.status["retries"], planned.events) == ({"worker-1": 3}, ())


def test_a_drained_pod_of_a_completed_replica_does_not_count() -> None:
    """The replica has succeeded in another pod."""
    fake_cluster = running(job_with(rule("Restart", DISRUPTION), rule("FailJob", DISRUPTION)))
    fake_cluster.resource["status"] = {**fake_cluster.status, "completed": {"worker": "1"}}
    drain(fake_cluster, "worker", 1)
    go_on(fake_cluster)
    assert (fake_cluster.status["state"], fake_cluster.status.get("retries")) == ("Running", None)
    assert restarts(fake_cluster) == []


def test_a_drain_after_the_replica_has_completed_does_not_count() -> None:
    fake_cluster = running(job_with(rule("Restart", DISRUPTION), rule("FailJob", on_codes(143))))
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    drain(fake_cluster, "worker", 1)
    go_on(fake_cluster)
    assert (fake_cluster.status["state"], fake_cluster.status.get("retries")) == ("Running", None)
    assert fake_cluster.replicas() == EVERYONE[:3]


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(mxjob().v1().servers(1).workers(2).restart("Never"), id="Never"),
        pytest.param(mxjob().v1().servers(1).workers(2).restart("OnFailure"), id="OnFailure"),
        pytest.param(job_with(rule("FailJob", DISRUPTION)), id="FailJob"),
        pytest.param(job_with(rule("Count", DISRUPTION)), id="Count"),
        pytest.param(job_with(rule("RestartJob", DISRUPTION)), id="RestartJob"),
        pytest.param(mxjob().v1().servers(1).workers(2).run_policy(restartScope="Job"), id="restartScope Job"),
    ],
)
def test_an_eviction_after_the_replica_has_completed_is_no_failure(job: MXJob) -> None:
    """A sidecar kept its pod running; the kubelet ends such a pod in place, without a deletion."""
    fake_cluster = running(job)
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.pod("worker", 1)["status"]["phase"] = "Running"
    fake_cluster.settle()
    assert fake_cluster.status["completed"] == {"worker": "1"}
    before = fake_cluster.pods
    fake_cluster.evict("worker", 1)
    go_on(fake_cluster)
    assert (fake_cluster.status["state"], fake_cluster.status.get("retries")) == ("Running", None)
    assert fake_cluster.replicas() == EVERYONE
    assert fake_cluster.pods.keys() == before.keys()
    assert restarts(fake_cluster) == []


def test_a_deletion_by_the_user_is_no_failure() -> None:
    rules = [rule("FailJob", on_codes(1, operator="NotIn")), rule("FailJob", DISRUPTION)]
    fake_cluster = running(job_with(*rules))
    fake_cluster.user_deletes("digits-worker-1")
    fake_cluster.exit("worker", 1, 143)
    go_on(fake_cluster)
    assert (fake_cluster.status["state"], fake_cluster.replicas()) == ("Running", EVERYONE)


# --- RestartJob


def crash(fake_cluster: FakeCluster) -> None:
    fake_cluster.exit("worker", 1, 3)


def oom(fake_cluster: FakeCluster) -> None:
    fake_cluster.exit("server", 0, 137, "OOMKilled")


def evict(fake_cluster: FakeCluster) -> None:
    fake_cluster.evict("worker", 0)


def drained(fake_cluster: FakeCluster) -> None:
    drain(fake_cluster, "worker", 0)


ANYTHING = (
    rule("RestartJob", on_codes(3)),
    rule("RestartJob", {"onTerminationReasons": {"operator": "In", "values": ["OOMKilled"]}}),
    rule("RestartJob", DISRUPTION),
)


@pytest.mark.parametrize("scope", ["Replica", "Job"])
@pytest.mark.parametrize("restart", ["Never", "OnFailure"])
@pytest.mark.parametrize("loss", [crash, oom, evict, drained])
def test_restart_job(loss: Callable[[FakeCluster], None], restart: str, scope: str) -> None:
    fake_cluster = running(job_with(*ANYTHING, restart=restart, restartScope=scope))
    for attempt in (1, 2):
        before = {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}
        loss(fake_cluster)
        go_on(fake_cluster)
        assert fake_cluster.replicas() == EVERYONE
        assert not before & {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}
        assert (fake_cluster.status["attempt"], fake_cluster.status["retries"]) == (attempt, {"job": attempt})
    assert (fake_cluster.status["phase"], fake_cluster.status["state"]) == ("Running", "Running")
    assert "restarts all its replicas: " in restarts(fake_cluster)[-1]
    assert "has the action RestartJob" in restarts(fake_cluster)[-1]


def test_no_pod_of_the_next_attempt_beside_one_of_the_last() -> None:
    fake_cluster = running(job_with(*ANYTHING))
    before = set(fake_cluster.pods)
    crash(fake_cluster)
    fake_cluster.step()
    fake_cluster.advance(10)
    created = list(fake_cluster.created)
    for _ in range(4):
        fake_cluster.step()
        assert fake_cluster.created == created
    assert {name for name, pod in fake_cluster.pods.items() if pod["metadata"].get("deletionTimestamp")} == before - {
        "digits-worker-1"  # it had ended, so it is gone
    }
    fake_cluster.kubelet_deletes()
    fake_cluster.settle()
    assert len(fake_cluster.created) == len(created) + 4


def test_completed_replicas_run_again() -> None:
    fake_cluster = running(job_with(*ANYTHING))
    fake_cluster.exit("worker", 0, 0)
    fake_cluster.settle()
    assert fake_cluster.status["completed"] == {"worker": "0"}
    crash(fake_cluster)
    go_on(fake_cluster)
    assert fake_cluster.replicas() == EVERYONE
    assert "completed" not in fake_cluster.status


def test_a_restart_of_the_job_keeps_the_count_of_single_replicas() -> None:
    fake_cluster = running(job_with(*ANYTHING, rule("Restart", on_codes(4)), backoffLimit=2))
    for code in (4, 3):
        fake_cluster.exit("worker", 1, code)
        go_on(fake_cluster)
    assert fake_cluster.status["retries"] == {"worker-1": 1, "job": 1}
    assert (fake_cluster.attempt("worker", 1), fake_cluster.attempt("worker", 0)) == (1, 0)
    fake_cluster.exit("worker", 0, 4)
    go_on(fake_cluster)
    assert fake_cluster.status["failure"]["reason"] == "BackoffLimitExceeded"


def test_a_lost_status_counts_once() -> None:
    fake_cluster = running(job_with(*ANYTHING))
    crash(fake_cluster)
    for _ in range(3):
        fake_cluster.step(status_gets_lost=True)
    go_on(fake_cluster)
    assert (fake_cluster.status["attempt"], fake_cluster.status["retries"]) == (1, {"job": 1})


def test_an_outdated_status_does_not_restart_the_job_again() -> None:
    """The cache has the pods of the new attempt, and not yet the status that began it."""
    fake_cluster = running(job_with(*ANYTHING))
    old = dict(fake_cluster.status)
    crash(fake_cluster)
    go_on(fake_cluster)
    pods = {name: pod["metadata"]["uid"] for name, pod in fake_cluster.pods.items()}
    fake_cluster.resource["status"] = old
    planned = fake_cluster.planned()
    assert (planned.deletions, planned.pods) == ((), ())
    go_on(fake_cluster)
    assert {name: pod["metadata"]["uid"] for name, pod in fake_cluster.pods.items()} == pods


def test_an_edit_begins_with_the_first_attempt() -> None:
    fake_cluster = running(job_with(*ANYTHING))
    crash(fake_cluster)
    go_on(fake_cluster)
    fake_cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"].update(replicas=3))
    go_on(fake_cluster)
    assert fake_cluster.replicas() == [*EVERYONE, "worker-2"]
    assert not {"attempt", "retries"} & set(fake_cluster.status)


@pytest.mark.parametrize("text", ["-1x", "--1", "-" + "9" * 5000, "-1-1"])
def test_an_annotation_that_somebody_changed(text: str) -> None:
    job = job_with(*ANYTHING).job()
    pod = pod_of(job, "worker")
    key = "dljob.operator/spec-hash"
    spec_hash = pod.resource()["metadata"]["annotations"][key]
    pod.change(lambda made: made["metadata"]["annotations"].update({key: spec_hash + text}))
    assert restart_job.current_attempt(observed(job, [pod]), SpecHashes({"worker": TypeHashes(spec_hash)}), 2) == 2


# --- with restartScope Job


def test_ignore_of_a_whole_job() -> None:
    rules = (rule("Ignore", on_codes(3)), rule("Count", DISRUPTION))
    fake_cluster = running(job_with(*rules, restart="OnFailure", restartScope="Job", backoffLimit=1))
    for _ in range(3):
        crash(fake_cluster)
        go_on(fake_cluster)
    assert (fake_cluster.status["attempt"], fake_cluster.status.get("retries")) == (3, None)
    evict(fake_cluster)
    go_on(fake_cluster)
    assert fake_cluster.status["retries"] == {"job": 1}


# --- maxRestartsPerReplica


@pytest.mark.parametrize("policy", ["OnFailure", "ExitCode"])
def test_a_replica_beyond_its_limit(policy: str) -> None:
    """In place by the kubelet, or by a new pod."""
    job = mxjob().v1().servers(1).workers(2).restart(policy).run_policy(maxRestartsPerReplica=1)
    fake_cluster = running(job)
    for index in (0, 1):
        fake_cluster.exit("worker", index, 130)
        go_on(fake_cluster)
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("worker", 1, 130)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Failed"
    assert fake_cluster.status["reason"] == (
        "MaxRestartsPerReplicaExceeded: replica worker-1 ended 2 times with an error, "
        "spec.runPolicy.maxRestartsPerReplica allows 1 restarts; last: container mxnet of pod digits-worker-1 exited with "
        "130 (Error)"
    )
    assert fake_cluster.status["failure"]["exitCode"] == 130


def test_a_disruption_is_within_every_limit() -> None:
    job = mxjob().v1().servers(1).workers(2).restart("OnFailure").run_policy(maxRestartsPerReplica=0)
    fake_cluster = running(job)
    fake_cluster.evict("worker", 1)
    go_on(fake_cluster)
    assert fake_cluster.status["state"] == "Running"
    fake_cluster.exit("worker", 1, 1)
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "MaxRestartsPerReplicaExceeded"


# --- elastic workers


def elastic(*rules: dict[str, Any], policy: str = "Never") -> FakeCluster:
    resource = pytorchjob(
        worker=3, elasticPolicy={"minReplicas": 1}, runPolicy={"podFailurePolicy": {"rules": list(rules)}}
    )
    resource["spec"]["pytorchReplicaSpecs"]["Worker"]["restartPolicy"] = policy
    return running(resource, PYTORCH)


@pytest.mark.parametrize(
    ("action", "state", "attempt"), [("FailJob", "Failed", 0), ("Restart", "Running", 1), ("Count", "Running", 0)]
)
def test_an_elastic_worker(action: str, state: str, attempt: int) -> None:
    fake_cluster = elastic(rule(action, on_codes(3)))
    fake_cluster.exit("worker", 1, 3)
    go_on(fake_cluster)
    assert fake_cluster.status["state"] == state
    assert fake_cluster.attempt("worker", 1) == attempt


def test_an_elastic_job_restarts_as_a_whole() -> None:
    fake_cluster = elastic(rule("RestartJob", on_codes(3)))
    before = {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}
    fake_cluster.exit("worker", 1, 3)
    go_on(fake_cluster)
    assert fake_cluster.replicas() == ["worker-0", "worker-1", "worker-2"]
    assert not before & {pod["metadata"]["uid"] for pod in fake_cluster.pods.values()}


def test_an_elastic_worker_that_the_job_no_longer_has() -> None:
    fake_cluster = elastic(rule("RestartJob", on_codes(3)))
    fake_cluster.exit("worker", 2, 3)
    fake_cluster.edit(lambda spec: spec["pytorchReplicaSpecs"]["Worker"].update(replicas=2))
    go_on(fake_cluster)
    assert fake_cluster.replicas() == ["worker-0", "worker-1"]
    assert "attempt" not in fake_cluster.status


# --- every kind


@pytest.mark.parametrize(
    ("resource", "framework", "type_"),
    [
        pytest.param(tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1), TENSORFLOW, "worker", id="tf"),
        pytest.param(tfjob(master=1, worker=1), TENSORFLOW, "worker", id="tf-v1alpha1"),
        pytest.param(pytorchjob(1, 1), PYTORCH, "worker", id="pytorch"),
        pytest.param(jaxjob(2), JAX, "worker", id="jax"),
        pytest.param(xgboostjob(1, 1), XGBOOST, "worker", id="xgboost"),
        pytest.param(caffe2job(2), CAFFE2, "worker", id="caffe2"),
        pytest.param(mxjob().v1alpha1().workers(1).resource(), MXNET, "worker", id="mx-v1alpha1"),
        pytest.param(mxjob().fioravanzo().workers(1).resource(), MXNET, "worker", id="mx-fioravanzo"),
    ],
)
def test_every_kind(resource: Resource, framework: Framework, type_: str) -> None:
    rules = [rule("Restart", on_codes(3)), rule("FailJob", on_codes(4))]
    resource["spec"]["runPolicy"] = {"podFailurePolicy": {"rules": rules}}
    assert parse_job(resource, framework).run_policy.failure_rules
    fake_cluster = running(resource, framework)
    fake_cluster.exit(type_, 0, 3)
    go_on(fake_cluster)
    assert fake_cluster.status["retries"] == {f"{type_}-0": 1}
    fake_cluster.exit(type_, 0, 4)
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "PodFailurePolicy"
