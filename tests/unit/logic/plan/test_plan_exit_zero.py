"""A server or worker exits with 0: in every flavor its restart policy decides."""

from __future__ import annotations

import pytest
from support.builders import CAFFE2, TENSORFLOW, Resource, caffe2job, mxjob, tfjob
from support.fake_cluster import FakeCluster

OTHERS = ["server", "worker"]


def mx(flavor: str, policy: str) -> FakeCluster:
    return FakeCluster(mxjob().flavor(flavor).servers(1).workers(2).restart(policy).resource())


def tf(api_version: str, field: str, policy: str) -> FakeCluster:
    resource: Resource = tfjob(api_version, field, master=1, worker=2, ps=1)
    held = resource["spec"][field]
    for entry in held.values() if isinstance(held, dict) else held:
        if field == "tfReplicaSpecs":
            entry["restartPolicy"] = policy
        else:
            entry.setdefault("template", {}).setdefault("spec", {})["restartPolicy"] = policy
    return FakeCluster(resource, TENSORFLOW)


WORLDS = [
    *(pytest.param(lambda p, d=d: mx(d, p), "server", id=f"mx {d}") for d in ("v1", "v1alpha1", "fioravanzo", "mpba")),
    pytest.param(lambda p: tf("tensorflow.org/v1alpha1", "replicaSpecs", p), "ps", id="tf list"),
    pytest.param(lambda p: tf("kubeflow.org/v1", "tfReplicaSpecs", p), "ps", id="tf v1"),
    pytest.param(lambda p: FakeCluster(caffe2job(3, {"restartPolicy": p}), CAFFE2), "worker", id="caffe2"),
]


@pytest.mark.parametrize(("made", "other"), WORLDS)
def test_always_restarts_in_place(made, other: str) -> None:  # type: ignore[no-untyped-def]
    fake_cluster: FakeCluster = made("Always")
    fake_cluster.start()
    before = {name: pod["metadata"]["uid"] for name, pod in fake_cluster.pods.items()}
    for type_, index in (("worker", 1), (other, 0)):
        fake_cluster.exit(type_, index, 0)
        fake_cluster.settle()
        assert fake_cluster.pod(type_, index)["status"]["containerStatuses"][0]["restartCount"] == 1
        assert fake_cluster.pod(type_, index)["spec"]["restartPolicy"] == "Always"
    assert {name: pod["metadata"]["uid"] for name, pod in fake_cluster.pods.items()} == before
    assert fake_cluster.status["state"] == "Running"
    assert "completed" not in fake_cluster.status


@pytest.mark.parametrize(("made", "other"), WORLDS)
def test_always_replaces_a_missing_pod_even_after_success(made, other: str) -> None:  # type: ignore[no-untyped-def]
    fake_cluster: FakeCluster = made("Always")
    fake_cluster.start()
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    name = fake_cluster.pod("worker", 1)["metadata"]["name"]
    fake_cluster.user_deletes(name)
    fake_cluster.kubelet_deletes()
    fake_cluster.settle()
    assert fake_cluster.pod("worker", 1)["metadata"]["name"] == name


@pytest.mark.parametrize(("made", "other"), WORLDS)
@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_all_others_are_done(made, other: str, policy: str) -> None:  # type: ignore[no-untyped-def]
    fake_cluster: FakeCluster = made(policy)
    fake_cluster.start()
    fake_cluster.exit("worker", 1, 0)
    fake_cluster.settle()
    assert fake_cluster.pod("worker", 1)["status"]["phase"] == "Succeeded"
    assert fake_cluster.status["completed"] == {"worker": "1"}
