"""The last states of pods that are gone, until a status counts them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from dljob_operator.engine.cache.deleted_pods import DeletedPods

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIME = "2026-01-01T00:00:00Z"


def pod(name: str = "p", node: str = "n", namespace: str = "team", **more: Any) -> dict[str, Any]:
    labels = {"dljob.operator/replica-type": "worker", "dljob.operator/replica-index": "1", "mine": "x" * 1000}
    terminated = {"exitCode": 1, "startedAt": TIME, "finishedAt": TIME, "message": "long"}
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"{name}-uid", "labels": labels, "finalizers": ["x"]},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {
            "phase": "Failed",
            "message": "long",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": TIME, "message": "long"}],
            "containerStatuses": [{"name": "c", "image": "long", "state": {"terminated": terminated}}],
        },
        **more,
    }


def job(counted: Any = None, namespace: str = "team") -> dict[str, Any]:
    return {"metadata": {"namespace": namespace}, "status": {"usage": {"counted": counted}}}


def gone(most: int = 100_000) -> DeletedPods:
    return DeletedPods(lambda: NOW, most)


def numbers(pods: DeletedPods, uid: str = "the-job", namespace: str = "team") -> list[int]:
    _, *others = pods.of(uid, namespace)
    return [one["deleted"]["number"] for one in others]


def watch(pods: DeletedPods, uid: str = "the-job") -> str:
    return str(pods.of(uid, "team")[0]["watch"])


def test_what_is_kept_of_a_pod() -> None:
    pods = gone()
    pods.pod_deleted(pod(), ["the-job"])
    head, kept = pods.of("the-job", "team")
    assert head == {"watch": watch(pods), "since": TIME}
    assert kept["deleted"] == {"number": 1, "at": TIME}
    assert kept["spec"] == pod()["spec"]
    assert "long" not in str(kept)
    assert "xxx" not in str(kept)
    assert kept["metadata"]["labels"] == {"dljob.operator/replica-type": "worker", "dljob.operator/replica-index": "1"}


def test_a_pod_that_has_had_no_node_is_not_kept() -> None:
    pods = gone()
    pods.pod_deleted(pod(node=""), ["the-job"])
    pods.pod_deleted({"metadata": pod()["metadata"]}, ["the-job"])
    assert len(pods) == 0


def test_whose_they_are() -> None:
    pods = gone()
    pods.pod_deleted(pod("a"), ["the-job", "another"])
    pods.pod_deleted(pod("b", namespace="other"), ["the-job"])
    assert numbers(pods) == [1]
    assert numbers(pods, "another") == [2]
    assert numbers(pods, namespace="other") == [3]
    assert numbers(pods, "unknown") == []


def test_what_a_status_counts_is_dropped() -> None:
    pods = gone()
    for name in "abc":
        pods.pod_deleted(pod(name), ["the-job"])
    for counted in (None, 5, "x", f"{watch(pods)}/", f"{watch(pods)}/0", "another/9"):
        pods.job_changed("the-job", job(counted))
    pods.job_changed("the-job", job(f"{watch(pods)}/3", "other"))
    pods.job_changed("the-job", {"metadata": {"namespace": "team"}, "status": "odd"})
    assert numbers(pods) == [1, 2, 3]
    pods.job_changed("the-job", job(f"{watch(pods)}/2"))
    assert numbers(pods) == [3]
    assert len(pods) == 1


def test_a_job_that_is_gone_takes_them_with_it() -> None:
    pods = gone()
    pods.pod_deleted(pod(), ["the-job"])
    pods.job_deleted("the-job", "team")
    pods.job_deleted("unknown", "team")
    assert (len(pods), numbers(pods)) == (0, [])


def test_there_are_not_more_than_so_many_and_the_job_that_loses_one_gets_to_know() -> None:
    one = gone()
    one.pod_deleted(pod("a"), ["the-job"])
    pods = gone(3 * len(json.dumps(one.of("the-job", "team")[1], separators=(",", ":"))))
    before = watch(pods)
    pods.pod_deleted(pod("a"), ["the-job"])
    for name in "bcd":
        pods.pod_deleted(pod(name), ["another"])
    assert (numbers(pods), numbers(pods, "another")) == ([], [2, 3, 4])
    assert watch(pods) != before
    assert watch(pods, "another") == before
    pods.job_changed("the-job", job(f"{before}/9"))
    pods.pod_deleted(pod("e"), ["the-job"])
    pods.job_changed("the-job", job(f"{before}/9"))
    assert numbers(pods) == [5]


@pytest.mark.parametrize("count", [1, 1000])
def test_a_pod_of_a_thousand_containers_is_one_that_is_missing(count: int) -> None:
    pods = gone()
    before = watch(pods)
    large = pod()
    large["spec"]["containers"] *= count
    pods.pod_deleted(large, ["the-job"])
    assert (len(pods), watch(pods) == before) == ((1, True) if count == 1 else (0, False))


def test_each_process_has_a_name_of_its_own() -> None:
    assert watch(gone()) != watch(gone())
