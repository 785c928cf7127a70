"""Nothing is wrong: no cause for healthy jobs in all phases, of all kinds."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from dljob.why import Snapshot, explain
from dljob.why.facts import Facts
from support import builders
from support.why_snapshots import (
    ago,
    changed,
    condition,
    container,
    ended,
    event,
    job,
    pod,
    pod_event,
    running,
    snapshot,
    unplaced,
    waiting,
)

WORKER = pod("worker")
SUCCESS = {"conditions": [condition("Running", "False"), condition("Succeeded")]}
CREATING = pod("master", "Pending", container(waiting("ContainerCreating")))
KINDS = {
    "MXJob": builders.mxjob().v1().workers(2).resource(),
    "MXJob-list": builders.mxjob().workers(2).resource(),
    "Caffe2Job": builders.caffe2job(3),
    "TFJob-v1alpha1": builders.tfjob(master=1, worker=2),
    "TFJob": builders.tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2),
    "PyTorchJob": builders.pytorchjob(master=1, worker=2),
    "XGBoostJob": builders.xgboostjob(worker=2),
    "PaddleJob": builders.paddlejob(worker=3),
    "JAXJob": builders.jaxjob(worker=3),
    "MPIJob": builders.mpijob(),
}


def new(age: float) -> Snapshot:
    return changed(snapshot(of={**job(age=age), "status": {}}), pods=())


def queued(*pods: dict[str, Any]) -> Snapshot:
    """A job of a queue that runs: then nothing of the queue is read."""
    of = job()
    of["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    return snapshot(*pods, of=of)


def unqueued() -> Snapshot:
    """A job that names a queue, of a kind that Kueue does not know: it runs."""
    of = job()
    of["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    return snapshot(of=of, local_queues=({"metadata": {"name": "research"}},))


PHASES: dict[str, Snapshot] = {
    "of a kind that Kueue does not queue": unqueued(),
    "admitted by Kueue": queued(),
    "admitted by Kueue, and ended": queued(
        pod("master", "Succeeded", container(ended(0))), pod("worker", "Succeeded", container(ended(0)))
    ),
    "new": new(5),
    "created": changed(snapshot(of=job(age=3, conditions=[condition("Created", age=2)])), pods=()),
    "first pod": snapshot(pod(), of=job(age=10, conditions=[condition("Created", age=2)])),
    "not yet scheduled": snapshot({**unplaced(""), "metadata": {"name": "a", "creationTimestamp": ago(2)}, "status": {}}, WORKER),
    "creating": snapshot(CREATING, WORKER),
    "pulling": snapshot(CREATING, WORKER, events=(pod_event("Pulling", 'Pulling image "x"', 60, "Normal"),)),
    "a mount that took two tries": snapshot(
        CREATING, WORKER,
        events=(
            pod_event("FailedMount", 'MountVolume.SetUp failed for volume "kube-api-access-x" : failed to sync configmap cache: timed out waiting for the condition', 20),
            pod_event("Pulling", "", 10, "Normal"),
        ),
    ),
    "a cache that is not in step": snapshot(
        CREATING, WORKER, events=(pod_event("FailedMount", 'MountVolume.SetUp failed for volume "x" : failed to sync secret cache', 20),),
    ),
    "init": snapshot(pod("master", "Pending", init=container(running(20), "first")), WORKER),
    "a sidecar": snapshot(pod(init=container(running(900), "proxy"), spec={"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}), WORKER),
    "running": snapshot(),
    "not ready for a moment": snapshot(
        pod(conditions=(condition("Ready", "False", age=10),)), WORKER,
        events=(pod_event("Unhealthy", "Readiness probe failed: ", 5),),
    ),
    "an old Event of the scheduler": snapshot(pod(), WORKER, events=(pod_event("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.", 300),)),
    "an old Event of a refusal": snapshot(events=(event("PyTorchJob", "train", "FailedCreatePod", "exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3", 20),)),
    "restarted long ago": snapshot(pod("master", "Running", container(running(7200), restarts=2, last=ended(1))), WORKER),
    "restarted once": snapshot(pod("master", "Running", container(running(5), restarts=1, last=ended(143))), WORKER),
    "terminating": snapshot(pod("master", metadata={"deletionTimestamp": ago(-5)}), WORKER),
    "told to stop": snapshot(pod("master", "Running", container(ended(143)), metadata={"deletionTimestamp": ago(-5)}), WORKER),
    "one has ended": snapshot(pod("master", "Succeeded", container(ended(0, "Completed"))), WORKER),
    "long training": snapshot(of=job(age=500_000, trainerStatus={"lastUpdatedTime": ago(60)})),
    "succeeded": snapshot(of=job(**SUCCESS)),
    "succeeded in a list layout": snapshot(of=job(state="Succeeded", phase="Done")),
    "succeeded and cleaned up": changed(snapshot(of=job(**SUCCESS)), pods=()),
    "succeeded beside a failed sidecar": snapshot(pod("master", "Succeeded", container(ended(0)), container(ended(3), "proxy")), of=job(**SUCCESS)),
    "resumed": snapshot(of=job(conditions=[condition("Suspended", "False"), condition("Running")])),
    "elastic": snapshot(pod(), of=job(spec={"elasticPolicy": {"minReplicas": 1}})),
}  # fmt: skip


@pytest.mark.parametrize("name", PHASES)
def test_a_healthy_job_has_no_cause(name: str) -> None:
    assert explain(PHASES[name]) == ()


def of_kind(kind: str, phase: str, age: float) -> Snapshot:
    """A job of that kind with all its pods in a phase, some seconds after its creation."""
    status: dict[str, Any] = {"conditions": [condition("Created"), condition("Running")], "observedGeneration": 1}
    found = {**KINDS[kind], "status": status if phase != "new" else {}}
    found["metadata"] = {**found["metadata"], "creationTimestamp": ago(age if phase != "new" else 5)}
    if phase == "Succeeded":
        found["status"] = {**status, "state": "Succeeded", "conditions": [condition("Succeeded")]}
    states = {"Running": container(running(age)), "Succeeded": container(ended(0, age=age))}
    state = states.get(phase, container(waiting("ContainerCreating")))
    replicas = [
        (one.type.lower(), index)
        for one in Facts(Snapshot(found, snapshot().now)).replicas
        for index in range(one.count)
    ]
    pods = [
        pod(type_, phase, state, metadata={"name": f"{type_}-{index}", "uid": f"{type_}-{index}"})
        for type_, index in replicas
    ]
    assert pods, "the replicas of the kind are found"
    return snapshot(*pods, of=found) if phase != "new" else changed(snapshot(of=found), pods=())


EVERY = list(
    itertools.product(KINDS, ("new", "Pending", "Running", "Succeeded"), (1, 25, 100, 3600, 10_000, 1_000_000))
)


def test_no_false_alarm_on_two_hundred_healthy_jobs() -> None:
    assert len(EVERY) >= 200
    alarms = {row: causes for row in EVERY if (causes := explain(of_kind(*row)))}
    assert not alarms
