"""What follows when a server or worker exits with 0: in every flavor the restart policy's own word."""

from __future__ import annotations

import pytest
from support.builders import CAFFE2, TENSORFLOW, Resource, caffe2job, mxjob, tfjob
from support.fake_cluster import World

OTHERS = ["server", "worker"]


def mx(flavor: str, policy: str) -> World:
    return World(mxjob().flavor(flavor).servers(1).workers(2).restart(policy).resource())


def tf(api_version: str, field: str, policy: str) -> World:
    resource: Resource = tfjob(api_version, field, master=1, worker=2, ps=1)
    held = resource["spec"][field]
    for entry in held.values() if isinstance(held, dict) else held:
        if field == "tfReplicaSpecs":
            entry["restartPolicy"] = policy
        else:
            entry.setdefault("template", {}).setdefault("spec", {})["restartPolicy"] = policy
    return World(resource, TENSORFLOW)


WORLDS = [
    *(pytest.param(lambda p, d=d: mx(d, p), "server", id=f"mx {d}") for d in ("v1", "v1alpha1", "fioravanzo", "mpba")),
    pytest.param(lambda p: tf("tensorflow.org/v1alpha1", "replicaSpecs", p), "ps", id="tf list"),
    pytest.param(lambda p: tf("kubeflow.org/v1", "tfReplicaSpecs", p), "ps", id="tf v1"),
    pytest.param(lambda p: World(caffe2job(3, {"restartPolicy": p}), CAFFE2), "worker", id="caffe2"),
]


@pytest.mark.parametrize(("made", "other"), WORLDS)
def test_always_restarts_in_place(made, other: str) -> None:  # type: ignore[no-untyped-def]
    world: World = made("Always")
    world.start()
    before = {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}
    for type_, index in (("worker", 1), (other, 0)):
        world.exit(type_, index, 0)
        world.settle()
        assert world.pod(type_, index)["status"]["containerStatuses"][0]["restartCount"] == 1
        assert world.pod(type_, index)["spec"]["restartPolicy"] == "Always"
    assert {name: pod["metadata"]["uid"] for name, pod in world.pods.items()} == before
    assert world.status["state"] == "Running"
    assert "completed" not in world.status


@pytest.mark.parametrize(("made", "other"), WORLDS)
def test_always_replaces_a_pod_that_is_gone_though_it_had_ended_well(made, other: str) -> None:  # type: ignore[no-untyped-def]
    world: World = made("Always")
    world.start()
    world.exit("worker", 1, 0)
    world.settle()
    name = world.pod("worker", 1)["metadata"]["name"]
    world.user_deletes(name)
    world.kubelet_deletes()
    world.settle()
    assert world.pod("worker", 1)["metadata"]["name"] == name


@pytest.mark.parametrize(("made", "other"), WORLDS)
@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_all_others_are_done(made, other: str, policy: str) -> None:  # type: ignore[no-untyped-def]
    world: World = made(policy)
    world.start()
    world.exit("worker", 1, 0)
    world.settle()
    assert world.pod("worker", 1)["status"]["phase"] == "Succeeded"
    assert world.status["completed"] == {"worker": "1"}
