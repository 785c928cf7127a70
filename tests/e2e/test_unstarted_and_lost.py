"""Pods that no node has room for, and pods of a node that is lost: what their jobs do about them, by the real API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from support.live_jobs import UNTIL_ENDED, Cluster, v1_job

SetReady = Callable[[str], None]


def only_scheduler(name: str, run_policy: dict[str, Any], **pod: Any) -> dict[str, Any]:
    """A v1 job of one pod with these fields."""
    manifest = v1_job(name, "OnFailure", run_policy, scheduler=UNTIL_ENDED)
    replicas = manifest["spec"]["mxReplicaSpecs"]
    manifest["spec"]["mxReplicaSpecs"] = {"Scheduler": replicas["Scheduler"]}
    replicas["Scheduler"]["template"]["spec"] |= pod
    return manifest


def test_a_job_that_no_node_has_room_for_ends_with_the_schedulers_reason(here: Cluster) -> None:
    nowhere = {"dljob.operator/no-node": "has-this"}
    status = here.create(only_scheduler("unschedulable", {"pendingTimeoutSeconds": 3}, nodeSelector=nowhere)).wait_end()
    assert status["phase"] == "Failed"
    assert "spec.runPolicy.pendingTimeoutSeconds, 3 s" in status["reason"]
    assert "didn't match Pod's node affinity/selector" in status["reason"], "kube-scheduler's words"


@pytest.fixture
def lost_node(here: Cluster) -> Iterator[tuple[str, SetReady]]:
    """The name of a node without a kubelet, which reports Ready, and a function that sets that condition.

    It has no label of an operating system, so that no DaemonSet of the cluster starts pods on it.
    """
    core, name = here.core, f"lost-{here.namespace}"

    def set_ready(status: str) -> None:
        now = datetime.now(UTC).isoformat()
        ready = {"type": "Ready", "status": status, "reason": "SetByTheTest"}
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        core.patch_node_status(name, {"status": {"conditions": [{**ready, **times}]}})

    core.create_node({"metadata": {"name": name}})
    try:
        set_ready("True")
        yield name, set_ready
    finally:
        # by force, as nothing on this node confirms their end: otherwise the namespace stays for a minute
        core.delete_collection_namespaced_pod(here.namespace, grace_period_seconds=0)
        core.delete_node(name)


@pytest.mark.long
def test_the_pods_of_a_lost_node_are_deleted_by_force_and_of_no_other(
    here: Cluster, lost_node: tuple[str, SetReady]
) -> None:
    node, set_ready = lost_node
    job = here.create(only_scheduler("on-a-lost-node", {"forceDeleteAfterSeconds": 1}, nodeName=node))
    (pod,) = here.wait_pods(job.uid, lambda pods: len(pods) == 1, "its pod")
    here.core.delete_namespaced_pod(pod["metadata"]["name"], here.namespace)
    kept = here.wait_event(job.name, "Warning", "PodNotTerminated", "the node")
    assert f"the node {node} is Ready: not deleted by force" in kept
    assert [one["metadata"]["uid"] for one in job.pods()] == [pod["metadata"]["uid"]]

    set_ready("False")
    here.wait_event(job.name, "Warning", "PodForceDeleted", f"the node {node} is NotReady (SetByTheTest)")
    new = here.wait_pods(
        job.uid,
        lambda pods: [one["metadata"]["uid"] for one in pods] not in ([], [pod["metadata"]["uid"]]),
        "a new pod",
    )
    assert [one["metadata"]["name"] for one in new] == [pod["metadata"]["name"]]
    job.delete()
