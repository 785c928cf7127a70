"""Races of two jobs, of which only one fits at a time on the nodes of `small_nodes`."""

from __future__ import annotations

import os
import random
import time
from typing import Any

from support.live_jobs import Cluster, Job, until
from support.small_nodes import placed_on, succeeds

ROUNDS = int(os.environ.get("DLJOB_GANG_ROUNDS", "2"))
GATE = "dljob-test/gate"
SEED = 20261129
MIXED = ("a", "b", "a", "b")
"""The order in which each job gets half of the room where nothing keeps their pods together."""
PODS, ROOM = 3, 4


def job(here: Cluster, name: str, gated: bool = False, **run_policy: Any) -> Job:
    """A master and two workers, of one CPU each."""
    spec = {
        "containers": [{"name": "pytorch", "image": "none", "resources": {"requests": {"cpu": "1"}}}],
        "terminationGracePeriodSeconds": 1,
        **placed_on(here.namespace),
        **({"schedulingGates": [{"name": GATE}]} if gated else {}),
    }
    replicas = {
        type_: {"replicas": count, "restartPolicy": "OnFailure", "template": {"spec": spec}}
        for type_, count in (("Master", 1), ("Worker", 2))
    }
    return here.create(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": name},
            "spec": {"runPolicy": run_policy, "pytorchReplicaSpecs": replicas},
        }
    )


def placed(one: Job) -> int:
    """How many of its pods have a node."""
    return sum(1 for pod in one.pods() if pod["spec"].get("nodeName"))


def race(here: Cluster, number: int) -> tuple[Job, Job]:
    """Two jobs whose pods come to the scheduler one by one: MIXED in odd rounds, else in an order of chance."""
    jobs = {name: job(here, f"{name}-{number}", gated=True) for name in ("a", "b")}
    for one in jobs.values():
        here.wait_pods(one.uid, lambda pods: len(pods) == PODS, "three pods")
    waiting = {name: [pod["metadata"]["name"] for pod in one.pods()] for name, one in jobs.items()}
    first = MIXED if number % 2 else ()
    order = [*first, *random.Random(SEED + number).sample(["a"] * PODS + ["b"] * PODS, 2 * PODS)]
    for name in order:
        if waiting[name]:
            gone = [{"op": "remove", "path": "/spec/schedulingGates"}]
            here.core.patch_namespaced_pod(waiting[name].pop(), here.namespace, gone)
    return jobs["a"], jobs["b"]


def end(*jobs: Job) -> None:
    for one in jobs:
        one.delete()
    for one in jobs:
        one.wait_deleted()
        until(lambda one=one: not one.pods())


def is_stuck(one: Job, other: Job) -> bool:
    """Whether each holds half of the room, so that neither starts."""
    return (placed(one), placed(other)) == (ROOM // 2, ROOM // 2)


def winner(one: Job, other: Job) -> tuple[Job, Job] | None:
    """The job that runs, and the one that waits, once the room is given away; None if they wait for each other."""
    found: list[tuple[int, int]] = []

    def is_settled() -> bool:
        found[:] = [(placed(one), placed(other))]
        return PODS in found[0] or sum(found[0]) == ROOM

    until(is_settled)
    if PODS not in found[0]:
        return None
    return (one, other) if found[0][0] == PODS else (other, one)


def hand_over(here: Cluster, first: Job, second: Job) -> float:
    """The seconds from when all pods of the ``first`` job have ended until all those of the ``second`` have a node."""
    first.wait_running()
    for pod in first.pods():
        succeeds(here.core, pod)
    here.wait_pods(first.uid, lambda pods: {pod["status"]["phase"] for pod in pods} == {"Succeeded"}, "its pods end")
    begin = time.monotonic()
    here.wait_pods(second.uid, lambda pods: sum(bool(pod["spec"].get("nodeName")) for pod in pods) == PODS, "it starts")
    return time.monotonic() - begin
