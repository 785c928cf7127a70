"""The last known states of failed pods of batch Jobs, which the Job controller may delete before a run sees them."""

from __future__ import annotations

from typing import Any

import pytest

from dljob_operator.engine.cache.failed_pods import FailedPods
from dljob_operator.engine.cache.predicates import Change


def pod(*codes: int | None, owner: str = "the-job", name: str = "p", kind: str = "Job", **last: int) -> dict[str, Any]:
    """A pod with a container for each exit code, of which ``None`` runs; ``last`` are codes before a restart."""
    states = [{"state": {"terminated": {"exitCode": code}} if code is not None else {"running": {}}} for code in codes]
    for code in last.values():
        states.append({"state": {"running": {}}, "lastState": {"terminated": {"exitCode": code}}})
    reference = {"apiVersion": "batch/v1", "kind": kind, "uid": owner, "controller": True}
    metadata = {"name": name, "namespace": "team", "uid": f"{name}-uid", "ownerReferences": [reference]}
    return {"metadata": metadata, "status": {"containerStatuses": states}}


def names(pods: FailedPods, *uids: str, namespace: str = "team") -> list[str]:
    return [one["metadata"]["name"] for one in pods.of(uids or ("the-job",), namespace)]


@pytest.mark.parametrize(
    ("obj", "kept"),
    [
        (pod(17), True),
        (pod(None, 1), True),
        (pod(last=17), True),
        (pod(0), False),
        (pod(last=0), False),
        (pod(None), False),
        (pod(17, kind="MPIJob"), False),
        ({"metadata": pod()["metadata"]}, False),
        ({"metadata": {"name": "p", "namespace": "team", "uid": "1"}, "status": pod(17)["status"]}, False),
    ],
)
def test_which_states_are_kept(obj: dict[str, Any], kept: bool) -> None:
    for change in (Change(None, obj), Change(obj, None)):
        pods = FailedPods()
        pods.pod_changed(change)
        assert (len(pods), bool(names(pods))) == (kept, kept)


def test_the_state_of_a_deleted_pod_is_that_of_the_one_before() -> None:
    pods = FailedPods()
    pods.pod_changed(Change(pod(None), pod(last=17)))
    pods.pod_changed(Change(pod(last=17), None))
    (kept,) = pods.of(["the-job"], "team")
    assert kept == {**pod(last=17), "failedBefore": True}


def test_the_end_that_a_deletion_causes_replaces_no_failure() -> None:
    """As the kubelet reports it: once the killed container has ended, the end before is no longer in the status."""
    pods = FailedPods()
    leaving = {"deletionTimestamp": "2026-01-02T12:00:00Z"}
    pods.pod_changed(Change(None, pod(last=17)))
    for state in (pod(137, last=17), pod(137)):
        state["metadata"] |= leaving
        pods.pod_changed(Change(None, state))
    pods.pod_changed(Change(state, None))
    (kept,) = pods.of(["the-job"], "team")
    assert kept["status"]["containerStatuses"][-1]["lastState"] == {"terminated": {"exitCode": 17}}
    fresh = FailedPods()
    fresh.pod_changed(Change(state, None))
    assert len(fresh) == 0


def test_one_for_each_batch_job_the_newest() -> None:
    pods = FailedPods()
    for name, owner in (("a", "the-job"), ("b", "the-job"), ("c", "another")):
        pods.pod_changed(Change(None, pod(1, owner=owner, name=name)))
    assert (names(pods), names(pods, "the-job", "another", "unknown")) == (["b"], ["b", "c"])
    assert names(pods, namespace="elsewhere") == []
    pods.batch_job_gone("the-job", "team")
    pods.batch_job_gone("unknown", "team")
    assert names(pods, "the-job", "another") == ["c"]


def test_the_memory_is_bounded() -> None:
    pods = FailedPods(most=2)
    for owner in ("a", "b"):
        pods.pod_changed(Change(None, pod(1, owner=owner)))
    pods.pod_changed(Change(None, pod(2, owner="a")))
    pods.pod_changed(Change(None, pod(1, owner="c")))
    assert (len(pods), len(pods.of(["a", "b", "c"], "team"))) == (2, 2)
    assert len(pods.of(["b"], "team")) == 0, "the oldest"
    pods.pod_changed(Change(None, pod(*[1] * 2000, owner="large")))
    assert len(pods.of(["large"], "team")) == 0
