"""runPolicy.forceDeleteAfterSeconds: pods of a lost node are deleted by force, others never."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import force_delete_after
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.force_delete_after import NodeState
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Plan
from support.builders import MXNET, MXJob, Pod, at, mxjob, observed, pod_of
from support.fake_cluster import FakeCluster


def limited(seconds: int | None = 100) -> MXJob:
    return mxjob("digits").v1().workers(2).run_policy(forceDeleteAfterSeconds=seconds)


JOB = limited().job()


def worker(index: int = 0, node: str = "n1") -> Pod:
    return pod_of(JOB, "worker", index).running().change(lambda pod: pod["spec"].update(nodeName=node))


def deleted(index: int = 0, node: str = "n1") -> Pod:
    """Being deleted; its grace period ends after 30 s."""
    return worker(index, node).deleting()


@pytest.mark.parametrize(
    ("pods", "now", "due", "check"),
    [
        pytest.param([], 1e6, [], None, id="no pods"),
        pytest.param([worker()], 1e6, [], None, id="not being deleted"),
        pytest.param([deleted()], 10, [], 120, id="in its grace period"),
        pytest.param([deleted()], 129, [], 1, id="not yet"),
        pytest.param([deleted()], 130, ["digits-worker-0"], 30, id="now"),
        pytest.param([deleted(node="")], 1e6, [], None, id="on no node"),
        pytest.param([deleted(1), worker(), deleted(0)], 130, ["digits-worker-0", "digits-worker-1"], 30, id="several"),
        pytest.param([deleted()], 130 + 1000, ["digits-worker-0"], 100, id="for a while"),
        pytest.param([deleted()], 130 + 1e6, ["digits-worker-0"], 300, id="for days"),
    ],
)
def test_which_pods_and_when(pods: list[Pod], now: float, due: list[str], check: float | None) -> None:
    seen = observed(JOB, pods).pods
    found = force_delete_after.due(JOB, seen, at(now))
    assert [deletion.name for deletion in found] == due
    assert all(deletion.uid == f"uid-of-{deletion.name}" and deletion.lost_node == "n1" for deletion in found)
    assert force_delete_after.next_check(JOB, seen, at(now)) == check


@pytest.mark.parametrize(
    ("job", "administrator", "limit"),
    [
        (limited(None), None, None),
        (limited(None), 60, 60),
        (limited(0), 60, 0),
        (limited(0), None, 0),
        (mxjob("digits").flavor("mpba").workers(1), 60, 60),
    ],
)
def test_the_jobs_own_limit_precedes_the_administrators(
    job: MXJob, administrator: int | None, limit: int | None
) -> None:
    framework = dataclasses.replace(MXNET, force_delete_after_seconds=administrator)
    assert parse_job(job.resource(), framework).run_policy.force_delete_after_seconds == limit


def test_without_a_limit_nothing_is_due() -> None:
    job = limited(None).job()
    pods = observed(job, [deleted()]).pods
    assert (force_delete_after.due(job, pods, at(1e9)), force_delete_after.next_check(job, pods, at(0))) == ((), None)


def node(**ready: str) -> dict[str, Any]:
    other = {"type": "MemoryPressure", "status": "Unknown"}
    return {"status": {"conditions": [other, *([{"type": "Ready", **ready}] if ready else [])]}}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, NodeState(True, "no longer exists")),
        (node(status="True", reason="KubeletReady"), NodeState(False, "is Ready")),
        (node(status="Unknown", reason="NodeStatusUnknown"), NodeState(True, "is NotReady (NodeStatusUnknown)")),
        (node(status="False", reason="KubeletNotReady"), NodeState(True, "is NotReady (KubeletNotReady)")),
        (node(status="False"), NodeState(True, "is NotReady (False)")),
        (node(), NodeState(False, "has not reported yet whether it is Ready")),
        ({}, NodeState(False, "has not reported yet whether it is Ready")),
    ],
)
def test_a_lost_node(found: Mapping[str, Any] | None, expected: NodeState) -> None:
    assert force_delete_after.node_state(found) == expected


NODES = {"lost": NodeState(True, "is NotReady"), "fine": NodeState(False, "is Ready")}
GRACEFUL = Deletion("Pod", "z", "9")


def forced(name: str, where: str) -> Deletion:
    return Deletion("Pod", name, "1", lost_node=where)


KEPT = "and the node fine is Ready: not deleted by force, and the replica waits for its end"
DONE = "and the node lost is NotReady: deleted by force, and the replica gets a new pod"


@pytest.mark.parametrize(
    ("asked", "remaining", "notes"),
    [
        ((), "", []),
        ((forced("a", "lost"),), "a", [f"pod a should have terminated, {DONE}"]),
        ((forced("a", "fine"),), "", [f"pod a should have terminated, {KEPT}"]),
        ((forced("a", "lost"), forced("b", "lost")), "ab", [f"pod a and 1 more should have terminated, {DONE}"]),
        (
            (forced("a", "fine"), forced("b", "lost")),
            "b",
            [f"pod b should have terminated, {DONE}", f"pod a should have terminated, {KEPT}"],
        ),
    ],
)
def test_only_pods_of_lost_nodes_are_deleted(asked: tuple[Deletion, ...], remaining: str, notes: list[str]) -> None:
    plan = Plan(deletions=(*asked, GRACEFUL))
    assert set(force_delete_after.nodes_of(plan)) == {one.lost_node for one in asked}
    confirmed, found = force_delete_after.confirm(plan, NODES)
    assert "".join(one.name for one in confirmed.deletions) == remaining + "z"
    assert [note.message for note in found] == notes


# --- in a job


@pytest.mark.parametrize("scope", ["Replica", "Job"])
def test_a_job_plans_it_and_goes_on_with_a_new_pod(scope: str) -> None:
    """The deleted pod's graceful deletion is planned once; the deletion by force follows at its time."""
    fake_cluster = FakeCluster(limited().restart("OnFailure").run_policy(restartScope=scope))
    fake_cluster.start()
    for pod in fake_cluster.pods.values():
        pod["spec"]["nodeName"] = "n1"
    fake_cluster.user_deletes("digits-worker-1")
    for _ in range(3):
        fake_cluster.step()
    fake_cluster.advance(30)
    fake_cluster.step()
    fake_cluster.advance(99)
    assert fake_cluster.planned().requeue_after == 1
    fake_cluster.advance(1)
    done = fake_cluster.planned()
    assert "digits-worker-1" in [one.name for one in done.deletions if one.lost_node == "n1"]
    assert done.requeue_after == 30
    fake_cluster.kubelet_deletes()
    fake_cluster.settle()
    assert fake_cluster.replicas() == ["scheduler-0", "worker-0", "worker-1"]


def test_until_then_the_reason_says_that_the_pod_should_have_terminated() -> None:
    fake_cluster = FakeCluster(limited())
    fake_cluster.start()
    fake_cluster.pod("worker", 1)["spec"]["nodeName"] = "n1"
    fake_cluster.user_deletes("digits-worker-1")
    fake_cluster.advance(60)
    fake_cluster.step()
    assert fake_cluster.status["reason"].startswith("pod digits-worker-1 should have terminated at")
