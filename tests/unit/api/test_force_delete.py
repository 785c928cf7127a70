"""A pod of a lost node is deleted by force: which requests, and what the status and the Events say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import MXNET, UID, Resource, mxjob, pod_of, stamp
from support.recording_api import Api, context_of

JOB = mxjob("digits").v1().workers(2).run_policy(forceDeleteAfterSeconds=100)
DENIED = ApiError(403, "Forbidden", 'nodes is forbidden: User "o" cannot list resource "nodes" in API group ""')


class Cluster(Api):
    """With this node, or this answer to a request for it. Records the bodies of the deletions by name."""

    def __init__(self, node: Resource | ApiError | None) -> None:
        super().__init__()
        self.deletions: dict[str, Any] = {}
        self.reads: list[tuple[str, str]] = []
        self._node = node

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if path.startswith("/api/v1/nodes"):
            self.reads.append((path, query["fieldSelector"]))
            if isinstance(self._node, ApiError):
                raise self._node
            return {"items": [self._node] if self._node else []}
        if method == "DELETE":
            self.deletions[path.rpartition("/")[2]] = body
        return super().request(method, path, body, query, content_type)


def node(ready: str, reason: str = "NodeStatusUnknown") -> Resource:
    return {
        "metadata": {"name": "n1"},
        "status": {"conditions": [{"type": "Ready", "status": ready, "reason": reason}]},
    }


@pytest.fixture
def overdue() -> Iterator[None]:
    """All pods run on n1, and two workers should have terminated 100 s ago."""
    job = JOB.job()
    pods = [pod_of(job, "scheduler").running(), *(pod_of(job, "worker", n).running().deleting() for n in (0, 1))]
    for pod in pods:
        pod.change(lambda made: made["spec"].update(nodeName="n1"))
    for pod in pods[1:]:
        pod.change(lambda made: made["metadata"].update(deletionTimestamp=stamp(-100)))
    cache_snapshot.publish({UID: {"Pod": [pod.resource() for pod in pods], "Service": [], "ConfigMap": []}})
    yield
    cache_snapshot.publish(None)


def seen(api: Api, status: Resource | None = None, dry_run: bool = False) -> Outcome:
    resource = JOB.resource()
    return reconcile(context_of(api, dry_run), {**resource, "status": status} if status else resource, MXNET)


@pytest.mark.parametrize(
    ("found", "state"),
    [(node("Unknown"), "is NotReady (NodeStatusUnknown)"), (None, "no longer exists")],
)
def test_a_lost_node(overdue: None, found: Resource | None, state: str) -> None:
    api = Cluster(found)
    outcome = seen(api)
    assert api.reads == [("/api/v1/nodes", "metadata.name=n1")], "one request for all its pods"
    assert sorted(api.deletions) == ["digits-worker-0", "digits-worker-1"]
    for name, body in api.deletions.items():
        assert (body["gracePeriodSeconds"], body["preconditions"]) == (0, {"uid": f"uid-of-{name}"})
    reason = (
        f"pod digits-worker-0 and 1 more should have terminated, and the node n1 {state}: deleted by force, and the "
        "replica gets a new pod"
    )
    assert api.status is not None
    assert api.status["reason"] == reason
    assert f"PodForceDeleted: {reason}" in api.events()
    assert outcome.requeue_after == 30


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (node("True", "KubeletReady"), "is Ready"),
        (ApiError(500, "InternalError", "etcd is away"), "cannot be read (InternalError: etcd is away)"),
        (DENIED, "resources: [nodes], verbs: [list]"),
    ],
)
def test_what_is_not_deleted(overdue: None, found: Resource | ApiError, state: str) -> None:
    api = Cluster(found)
    outcome = seen(api)
    assert api.deletions == {}
    assert api.status is not None
    assert "not deleted by force" in api.status["reason"]
    assert state in api.status["reason"]
    assert [event.startswith("PodNotTerminated") for event in api.events()].count(True) == 1
    assert bool(outcome.warnings) == (found is DENIED), "the administrator's log names the missing permission"
    again = Cluster(found)
    assert seen(again, api.status).requeue_after == 30
    assert (again.status, again.events(), again.deletions) == (None, [], {}), "and nothing is written again"


def test_a_new_pod_with_an_accelerator_hides_no_lost_node() -> None:
    alpha = "alpha.kubernetes.io/nvidia-gpu"
    made = mxjob("digits").v1().workers(3).container("Worker", resources={"limits": {alpha: 1}})
    job = made.run_policy(forceDeleteAfterSeconds=100).job()
    scheduler, first, second = pod_of(job, "scheduler"), pod_of(job, "worker", 0), pod_of(job, "worker", 1)
    first.running().deleting().change(lambda pod: pod["spec"].update(nodeName="n1"))
    first.change(lambda pod: pod["metadata"].update(deletionTimestamp=stamp(-100)))
    owned = {"Pod": [pod.resource() for pod in (scheduler.running(), first, second.running())], "Service": []}
    cluster_info = {"config_map": "c", "config_maps": [], "resources": ["nvidia.com/gpu"]}
    cache_snapshot.publish({UID: {**owned, "ConfigMap": []}}, cluster_info)
    api = Cluster(None)
    reconcile(context_of(api), made.resource(), MXNET)
    cache_snapshot.publish(None)
    (worker,) = [pod for pod in api.made if pod["kind"] == "Pod"]
    assert worker["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 1}
    assert api.status is not None
    assert "the node n1 no longer exists: deleted by force" in api.status["reason"]


def test_a_dry_run_deletes_nothing(overdue: None) -> None:
    api = Cluster(node("Unknown"))
    seen(api, dry_run=True)
    assert {tuple(body["dryRun"]) for body in api.deletions.values()} == {("All",)}


def test_other_deletions_have_a_grace_period(overdue: None) -> None:
    api = Cluster(None)
    resource = JOB.resource()
    resource["spec"]["mxReplicaSpecs"]["Scheduler"]["template"]["spec"]["containers"][0]["image"] = "train:2"
    reconcile(context_of(api), resource, MXNET)
    assert "gracePeriodSeconds" not in api.deletions["digits-scheduler-0"]
    assert api.deletions["digits-worker-0"]["gracePeriodSeconds"] == 0


def test_without_overdue_pods_no_node_is_read() -> None:
    api = Cluster(node("Unknown"))
    seen(api)
    assert api.reads == []
