"""What must hold at each moment, from the events of watches."""

from __future__ import annotations

from typing import Any

import pytest
from devtools.lab.chaos.history import History

JOB = "job-uid-1"


def pod(uid: str, phase: str = "Running", *, rank: str = "worker-0", attempt: int = 0, taken: bool = False) -> Any:
    type_, _, index = rank.rpartition("-")
    return {
        "metadata": {
            "uid": uid,
            "name": f"pod-{uid}",
            "labels": {
                "dljob.operator/job-uid": JOB,
                "dljob.operator/replica-type": type_,
                "dljob.operator/replica-index": index,
                "dljob.operator/attempt": str(attempt),
            },
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": "DisruptionTarget", "status": "True"}] if taken else [],
        },
    }


def job(state: str = "", uid: str = JOB, **more: Any) -> Any:
    manifest = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "metadata": {"uid": uid, "name": "j"},
        "spec": {},
        "status": {"state": state} if state else {},
    }
    return manifest | more


def rules(history: History) -> list[str]:
    return [violation.rule for violation in history.violations]


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (pod("1"), pod("2"), ["two pods of one rank"]),
        (pod("1", "Pending"), pod("2", "Pending"), ["two pods of one rank"]),
        (pod("1", "Failed"), pod("2"), []),
        (pod("1"), pod("2", rank="worker-1"), []),
    ],
)
def test_a_rank_has_one_pod_at_a_time(first: Any, second: Any, found: list[str]) -> None:
    history = History()
    history.pod_event("ADDED", first, 1.0)
    history.pod_event("ADDED", second, 2.0)
    assert rules(history) == found


def test_a_deleted_pod_has_a_successor() -> None:
    history = History()
    history.pod_event("ADDED", pod("1"), 1.0)
    history.pod_event("DELETED", pod("1"), 2.0)
    history.pod_event("MODIFIED", pod("1"), 2.5)  # an event that comes twice brings nothing back
    history.pod_event("ADDED", pod("2"), 3.0)
    assert rules(history) == []


def test_a_pod_that_ends_after_its_deletion_has_not_failed() -> None:
    history = History()
    for phase, deleted, rank in (
        ("Running", True, "worker-0"),
        ("Failed", True, "worker-0"),
        ("Failed", False, "worker-1"),
        ("Failed", True, "worker-1"),
    ):
        one = pod(rank, phase, rank=rank)
        one["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {}
        history.pod_event("MODIFIED", one, 1.0)
    assert {one.rank: one.failed for one in history.pods.values()} == {"worker-0": False, "worker-1": True}


def test_the_pods_of_a_batch_job_are_those_that_it_controls() -> None:
    history = History()
    for uid, owner in (("1", "Job"), ("2", "MPIJob")):
        one = pod(uid, rank=f"worker-{uid}")
        one["metadata"]["ownerReferences"] = [{"kind": owner, "controller": True}]
        history.pod_event("ADDED", one, 1.0)
    assert [one.in_batch_job for one in history.pods.values()] == [True, False]


def test_a_list_ends_what_it_lacks() -> None:
    history = History()
    history.pod_event("ADDED", pod("1"), 1.0)
    history.pod_event("ADDED", pod("2", rank="worker-1"), 1.0)
    history.lack_pods({"2"})
    assert [one.uid for one in history.pods.values() if one.exists] == ["2"]


def test_a_pod_that_the_cluster_took_away_has_not_failed() -> None:
    history = History()
    history.pod_event("ADDED", pod("1", "Failed", taken=True), 1.0)
    history.pod_event("ADDED", pod("2", "Failed", rank="worker-1"), 1.0)
    assert [one.failed for one in history.pods.values()] == [False, True]


def test_a_job_is_disturbed_by_the_loss_of_a_pod_or_of_a_node() -> None:
    for lost_nodes, taken, found in ((set(), False, False), ({"gone"}, False, True), (set(), True, True)):
        history = History(lost_nodes=lost_nodes)
        one = pod("1", "Failed", taken=taken)
        one["spec"] = {"nodeName": "gone"}
        history.pod_event("ADDED", one, 1.0)
        assert history.is_disturbed(JOB) is found


@pytest.mark.parametrize(
    ("states", "found"),
    [
        (["Running", "Succeeded", "Succeeded"], []),
        (["Succeeded", "Failed"], ["an outcome changed"]),
        (["Failed", "Running"], ["an outcome changed"]),
        (["Succeeded", ""], ["an outcome changed"]),
    ],
)
def test_an_outcome_stays(states: list[str], found: list[str]) -> None:
    history = History()
    for state in states:
        history.job_event("MODIFIED", job(state), 1.0)
    assert rules(history) == found


def test_jobs_of_other_kinds_survive_a_list() -> None:
    history = History()
    history.job_event("ADDED", job(), 1.0)
    history.job_event("ADDED", job(uid="other", kind="TFJob"), 1.0)
    history.lack_jobs("kubeflow.org", "MXJob", set())
    assert [one.uid for one in history.jobs.values() if one.exists] == ["other"]


def test_the_pods_that_will_not_exist_for_long() -> None:
    history = History()
    stays, terminating, lost, gone = (pod(str(n), "Succeeded", rank=f"worker-{n}") for n in range(4))
    for one in (stays, terminating, gone):
        one["spec"] = {"nodeName": "present"}
    lost["spec"] = {"nodeName": "deleted"}
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for one in (stays, terminating, lost, gone, pod("5", "Pending", rank="worker-5")):
        history.pod_event("ADDED", one, 1.0)
    history.pod_event("DELETED", gone, 2.0)
    assert history.leaving(["present"]) == ["pod-1", "pod-2"]
