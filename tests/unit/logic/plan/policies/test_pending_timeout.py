"""runPolicy.pendingTimeoutSeconds: a job whose pods do not start fails with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import pending_timeout
from support.builders import MXNET, PYTORCH, MXJob, Pod, Resource, at, mxjob, observed, pod_of, pytorchjob, stamp
from support.fake_cluster import FakeCluster

UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
}
LIMIT = "pending for longer than spec.runPolicy.pendingTimeoutSeconds, 60 s"


def limited(seconds: int | None = 60, **run_policy: Any) -> MXJob:
    return mxjob().v1().workers(2).run_policy(pendingTimeoutSeconds=seconds, **run_policy)


JOB = limited().job()


def worker(index: int = 0) -> Pod:
    return pod_of(JOB, "worker", index)


def unschedulable(pod: Resource) -> None:
    pod["status"]["conditions"] = [UNSCHEDULABLE]


def with_init(*states: dict[str, Any], initialized: bool = False) -> Pod:
    """Pending, with init containers in these states."""
    status = {
        "phase": "Pending",
        "initContainerStatuses": [{"name": f"init-{n}", "state": state} for n, state in enumerate(states)],
        "conditions": [{"type": "Initialized", "status": str(initialized)}],
    }
    return worker().change(lambda pod: pod.update(status=status))


def ended(seconds: float, code: int = 0) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "finishedAt": stamp(seconds)}}


RUNNING = {"running": {"startedAt": stamp()}}
WAITING = {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.parametrize(
    ("pod", "left"),
    [
        pytest.param(worker(), 50, id="not scheduled yet"),
        pytest.param(worker().waiting("ContainerCreating"), 50, id="its container is created"),
        pytest.param(worker().created(-40), 10, id="older"),
        pytest.param(worker().created(-50), 0, id="just now"),
        pytest.param(worker().running(), None, id="running"),
        pytest.param(worker().succeeded(), None, id="succeeded"),
        pytest.param(worker().failed(), None, id="failed"),
        pytest.param(worker().deleting(), None, id="being deleted"),
        pytest.param(with_init(RUNNING), None, id="an init container runs"),
        pytest.param(with_init(WAITING), 50, id="an init container waits"),
        pytest.param(with_init(ended(4), RUNNING), None, id="the second init container runs"),
        pytest.param(with_init(ended(4), ended(7), initialized=True), 57, id="since the last init container"),
        pytest.param(with_init(ended(10), initialized=True), 60, id="its init container has just ended"),
        pytest.param(with_init(ended(11), initialized=True), 50, id="the clock of its node is a second ahead"),
        pytest.param(with_init(RUNNING, ended(7), initialized=True), 57, id="beside a sidecar"),
        pytest.param(with_init(ended(7, 1)), 50, id="an init container has failed"),
        pytest.param(with_init(ended(5000), initialized=True), 50, id="the clock of its node is ahead"),
        pytest.param(with_init(ended(-5000), initialized=True), 50, id="the clock of its node is behind"),
        pytest.param(worker().change(lambda p: p["metadata"].pop("creationTimestamp")), None, id="without a creation"),
    ],
)
def test_the_time_that_a_pod_has_left(pod: Pod, left: float | None) -> None:
    seen = observed(JOB, [pod])
    assert (pending_timeout.find_timeout(JOB, seen, at(10)) is None) == (left != 0)
    assert pending_timeout.next_check(JOB, seen, at(10)) == (left or None)


def test_without_the_field_nothing_ends_and_nothing_is_checked() -> None:
    job = limited(None).job()
    seen = observed(job, [worker()])
    assert (pending_timeout.find_timeout(job, seen, at(1e6)), pending_timeout.next_check(job, seen, at(0))) == (
        None,
        None,
    )


@pytest.mark.parametrize(
    ("pod", "cause"),
    [
        (worker().change(unschedulable), "Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
        (worker().waiting("ImagePullBackOff", "back-off"), "ImagePullBackOff: back-off"),
        (worker(), "no scheduler has assigned it to a node"),
        (
            worker().waiting("ContainerCreating").change(lambda pod: pod["spec"].update(nodeName="n1")),
            "its containers do not start on node n1",
        ),
    ],
)
def test_the_cause(pod: Pod, cause: str) -> None:
    failure = pending_timeout.find_timeout(JOB, observed(JOB, [pod]), at(60))
    assert failure is not None
    name = pod.view().name
    assert (failure.reason, failure.pod) == ("PendingTimeoutExceeded", name)
    assert failure.message == f"pod {name} is {LIMIT}: {cause}"


def test_several() -> None:
    failure = pending_timeout.find_timeout(JOB, observed(JOB, [worker(1), worker(0)]), at(60))
    assert failure is not None
    assert failure.message.startswith("pod digits-worker-0 and 1 more are pending for longer")


@pytest.mark.parametrize(("other", "fails"), [(Pod.running, False), (Pod.succeeded, False), (Pod.resource, True)])
def test_an_elastic_job_goes_on_without_a_worker(other: Any, fails: bool) -> None:
    spec = {"elasticPolicy": {"minReplicas": 1}, "runPolicy": {"pendingTimeoutSeconds": 60}}
    job = parse_job(pytorchjob(worker=2, **spec), PYTORCH)
    pods = [pod_of(job, "worker", index, framework=PYTORCH) for index in (0, 1)]
    other(pods[0])
    assert (pending_timeout.find_timeout(job, observed(job, pods), at(60)) is not None) == fails


# --- in a job


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always"])
def test_the_job_fails_at_the_time_whatever_its_restart_policy(policy: str) -> None:
    fake_cluster = FakeCluster(limited(cleanPodPolicy="Running", backoffLimit=5).restart(policy))
    fake_cluster.settle()
    fake_cluster.run("worker", 0)
    unschedulable(fake_cluster.pod("worker", 1))
    fake_cluster.advance(20)
    assert fake_cluster.step().requeue_after == 40
    assert fake_cluster.status["reason"].startswith("digits-worker-1: Unschedulable: 0/3 nodes")
    fake_cluster.run("scheduler", 0)
    fake_cluster.advance(40)
    fake_cluster.settle()
    assert fake_cluster.outcome == ("Failed", "Failed")
    message = f"pod digits-worker-1 is {LIMIT}: Unschedulable: {UNSCHEDULABLE['message']}"
    assert fake_cluster.status["failure"] == {
        "pod": "digits-worker-1",
        "reason": "PendingTimeoutExceeded",
        "message": message,
    }
    assert fake_cluster.status["reason"] == f"PendingTimeoutExceeded: {message}"
    assert [e.message for e in fake_cluster.events if e.reason == "MXJobFailed"] == [message]
    assert fake_cluster.replicas() == []


def test_a_replacement_has_the_whole_time_again() -> None:
    fake_cluster = FakeCluster(limited())
    fake_cluster.start()
    fake_cluster.advance(1000)
    fake_cluster.user_deletes("digits-worker-1")
    fake_cluster.kubelet_deletes()
    fake_cluster.settle()
    fake_cluster.advance(59)
    assert fake_cluster.step().requeue_after == 1
    fake_cluster.advance(1)
    fake_cluster.settle()
    assert fake_cluster.status["failure"]["reason"] == "PendingTimeoutExceeded"


def test_pods_of_an_older_spec_do_not_count() -> None:
    fake_cluster = FakeCluster(limited())
    fake_cluster.settle()
    fake_cluster.advance(60)
    fake_cluster.edit(lambda spec: spec["mxReplicaSpecs"]["Worker"].update(replicas=1))
    fake_cluster.settle()
    assert fake_cluster.status["state"] != "Failed"


def test_a_job_that_is_resumed_has_the_whole_time() -> None:
    fake_cluster = FakeCluster(limited())
    fake_cluster.settle()
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=True))
    fake_cluster.settle()
    fake_cluster.advance(600)
    fake_cluster.edit(lambda spec: spec["runPolicy"].update(suspend=False))
    fake_cluster.settle()
    assert fake_cluster.planned().requeue_after == 60


def test_success_in_the_last_moment_is_success() -> None:
    fake_cluster = FakeCluster(limited())
    fake_cluster.settle()
    fake_cluster.run("scheduler", 0)
    fake_cluster.exit("scheduler", 0, 0)
    fake_cluster.advance(60)
    fake_cluster.settle()
    assert fake_cluster.status["state"] == "Succeeded"


@pytest.mark.parametrize("value", [0, -1, "1m", True])
def test_what_is_refused(value: object) -> None:
    fake_cluster = FakeCluster(limited(value), MXNET)  # type: ignore[arg-type]
    fake_cluster.settle()
    assert "spec.runPolicy.pendingTimeoutSeconds" in fake_cluster.status["reason"]
