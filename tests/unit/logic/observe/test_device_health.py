"""Unhealthy devices in the report of a failure."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import device_health
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import crash_loops
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.failure import (
    describe,
    describe_end,
    explain,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from support.builders import Pod, mxjob, pod_of
from support.fake_cluster import FakeCluster

Resource = dict[str, Any]
JOB = mxjob().v1().workers(1).restart("Never")


def resource(name: str = "nvidia.com/gpu", **health: str) -> Resource:
    """The health of devices by their IDs, in which ``_`` stands for ``-``."""
    devices = [{"resourceID": device.replace("_", "-"), "health": value} for device, value in health.items()]
    return {"name": name, "resources": devices}


def status(*resources: Resource, name: str = "mxnet") -> Resource:
    return {"name": name, "allocatedResourcesStatus": list(resources)}


def said(health: str, message: str | None) -> Resource:
    device = {"resourceID": "gpu.example.com/pool/gpu-0", "health": health, "message": message}
    return status({"name": "claim:gpu/first", "resources": [device]})


@pytest.mark.parametrize(
    ("statuses", "clause"),
    [
        ([], ""),
        ([{"name": "mxnet"}], ""),
        ([{"name": "mxnet", "allocatedResourcesStatus": None}], ""),
        ([status({"name": "nvidia.com/gpu"}), status({"name": "nvidia.com/gpu", "resources": None})], ""),
        ([status(resource(GPU_1="Healthy", GPU_2="Unknown"))], ""),
        ([status({"name": "a", "resources": [{"resourceID": "b"}]})], ""),
        ([status(resource(GPU_1="Healthy", GPU_2="Unhealthy"))], "device nvidia.com/gpu GPU-2 was Unhealthy"),
        (
            [status(resource(GPU_1="Unhealthy", GPU_2="Unhealthy"), resource("rdma/hca", a="Unhealthy"))],
            "device nvidia.com/gpu GPU-1 and 2 more were Unhealthy",
        ),
        (
            [status(resource("rdma/hca", a="Unhealthy"), name="sidecar"), status(resource(GPU_1="Unhealthy"))],
            "device nvidia.com/gpu GPU-1 and 1 more were Unhealthy",
        ),
        (
            [status(resource("claim:gpu", a="Unhealthy"), name=name) for name in ("sidecar", "mxnet")],
            "device claim:gpu a was Unhealthy",
        ),
        (
            [said("Unhealthy", "ECC error count\nexceeded")],
            "device claim:gpu/first gpu.example.com/pool/gpu-0 was Unhealthy (ECC error count exceeded)",
        ),
        ([said("Unhealthy", None)], "device claim:gpu/first gpu.example.com/pool/gpu-0 was Unhealthy"),
    ],
)
def test_the_clause(statuses: list[Resource], clause: str) -> None:
    assert device_health.unhealthy(statuses, "mxnet") == clause


def test_the_words_of_a_driver_are_short() -> None:
    """The kubelet keeps 1024 characters of them, as many as an Event has."""
    clause = device_health.unhealthy([said("Unhealthy", "x" * 1024)], "mxnet")
    assert len(clause) < device_health.LONGEST + 80
    assert clause.endswith("xxx...)")


def on_a_bad_gpu(pod: Pod) -> Pod:
    def change(made: Resource) -> None:
        made["status"]["containerStatuses"][0]["allocatedResourcesStatus"] = [resource(GPU_1="Unhealthy")]

    return pod.change(change)


CLAUSE = "and its device nvidia.com/gpu GPU-1 was Unhealthy"


def test_the_report_of_a_failure_has_it_before_the_log() -> None:
    pod = on_a_bad_gpu(pod_of(JOB.job(), "worker").failed(1, message="Xid 79"))
    found = describe(pod.view())
    assert found.message == f"container mxnet of pod digits-worker-0 exited with 1 (Error), {CLAUSE}: Xid 79"
    assert found.log == "Xid 79"


def test_the_report_of_a_pod_without_an_exit_code_has_it() -> None:
    pod = on_a_bad_gpu(pod_of(JOB.job(), "worker").waiting("PodInitializing"))
    pod.change(lambda made: made["status"].update(phase="Failed", reason="Evicted", message="low on memory"))
    assert describe(pod.view()).message == f"pod digits-worker-0 failed: Evicted, {CLAUSE}: low on memory"


@pytest.mark.parametrize(
    ("requirement", "before"),
    [
        ({"onExitCodes": {"operator": "In", "values": [1]}}, "exited with 1 (Error)"),
        ({"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}, "exited with 1"),
    ],
    ids=["exit code", "condition"],
)
def test_the_report_of_a_rule_has_it(requirement: Resource, before: str) -> None:
    policy = {"rules": [{"action": "FailJob", **requirement}]}
    job = mxjob().v1().workers(1).restart("Never").run_policy(podFailurePolicy=policy).job()
    pod = on_a_bad_gpu(pod_of(job, "worker").failed(1).disrupted())
    assert f"{before}, {CLAUSE}, for which spec.runPolicy" in explain(job, pod.view()).message


def test_the_reason_of_a_container_that_starts_again_has_it() -> None:
    pod = on_a_bad_gpu(pod_of(mxjob().v1().workers(1).restart("OnFailure").job(), "worker").exited(1))
    assert CLAUSE in crash_loops.first(Observed((pod.view(),)), {})


def test_the_last_failure_of_a_launcher_has_it() -> None:
    """Once the batch Job of an MPIJob has no retries left, its report is about this failure."""
    last = on_a_bad_gpu(pod_of(JOB.job(), "worker").failed(1)).view().last_failure
    assert last is not None
    assert CLAUSE in describe_end(last).message


def test_the_status_and_the_event_have_it() -> None:
    cluster = FakeCluster(JOB)
    cluster.settle()
    cluster.run_all()
    cluster.exit("worker", 0, 1, message="Xid 79")
    cluster.pod("worker", 0)["status"]["containerStatuses"][0]["allocatedResourcesStatus"] = [
        resource(GPU_1="Unhealthy")
    ]
    cluster.settle()
    expected = f"exited with 1 (Error), {CLAUSE}: Xid 79"
    assert expected in cluster.status["reason"]
    assert expected in cluster.status["conditions"][-1]["message"]
    assert any(note.reason == "MXJobFailed" and expected in note.message for note in cluster.events)
    assert set(cluster.status["failure"]) == {"pod", "container", "exitCode", "reason", "message"}, "no field is new"
