"""Snapshots of jobs for the tests of `explain`: a healthy one of two replicas, with what a test changes."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

from dljob.why import Snapshot

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
UID = "5f0c8f4e-0000-4000-8000-000000000001"
Resource = dict[str, Any]


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(type_: str, status: str = "True", reason: str = "", message: str = "", age: float = 300) -> Resource:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": ago(age)}


def job(age: float = 600, spec: Resource | None = None, **status: Any) -> Resource:
    """A PyTorchJob with a master and a worker, which runs unless ``status`` says otherwise."""
    template = {"spec": {"containers": [{"name": "pytorch", "image": "registry.example/train:1"}]}}
    replicas = {one: {"replicas": 1, "template": template} for one in ("Master", "Worker")}
    running = {"conditions": [condition("Created"), condition("Running")], "phase": "Running", "reason": ""}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": "train",
            "namespace": "team",
            "uid": UID,
            "generation": 1,
            "creationTimestamp": ago(age),
        },
        "spec": {"pytorchReplicaSpecs": replicas, **(spec or {})},
        "status": {**running, "observedGeneration": 1, **status},
    }


def failed(reason: str, message: str = "", failure: Resource | None = None) -> Resource:
    """The job after its failure, as the operator reports it."""
    text = f"{reason}: {message}"
    return job(state="Failed", reason=text, failure=failure or {}, conditions=[condition("Failed", message=message)])


def container(state: Resource, name: str = "pytorch", restarts: int = 0, last: Resource | None = None) -> Resource:
    return {"name": name, "state": state, "restartCount": restarts, "lastState": last or {}}


def waiting(reason: str, message: str = "") -> Resource:
    return {"waiting": {"reason": reason, "message": message}}


def ended(code: int, reason: str = "Error", message: str = "", age: float = 60) -> Resource:
    end = {"exitCode": code, "reason": reason, "message": message}
    return {"terminated": {**end, "startedAt": ago(age + 60), "finishedAt": ago(age)}}


def running(age: float = 300) -> Resource:
    return {"running": {"startedAt": ago(age)}}


def pod(
    type_: str = "master",
    phase: str = "Running",
    *containers: Resource,
    init: Resource | None = None,
    conditions: tuple[Resource, ...] = (),
    spec: Resource | None = None,
    metadata: Resource | None = None,
    **status: Any,
) -> Resource:
    """A pod of the job; one that runs is ready unless ``conditions`` are given."""
    name = f"train-{type_}-0"
    is_ready = "True" if phase == "Running" else "False"
    given = [*conditions] or [condition("PodScheduled"), condition("Ready", is_ready)]
    return {
        "metadata": {
            "name": name,
            "uid": f"{UID}-{type_}",
            "creationTimestamp": ago(400),
            "labels": {"dljob.operator/replica-type": type_},
            **(metadata or {}),
        },
        "spec": {
            "nodeName": "node-a",
            "containers": [{"name": "pytorch", "image": "registry.example/train:1"}],
            **(spec or {}),
        },
        "status": {
            "phase": phase,
            "conditions": given,
            "containerStatuses": list(containers) or [container(running())],
            "initContainerStatuses": [init] if init else [],
            **status,
        },
    }


def unplaced(message: str, reason: str = "Unschedulable", **more: Any) -> Resource:
    """A pod without a node."""
    found = pod("master", "Pending", conditions=(condition("PodScheduled", "False", reason, message),), **more)
    del found["spec"]["nodeName"]
    found["status"]["containerStatuses"] = []
    return found


def node(name: str = "node-a", *conditions: Resource, spec: Resource | None = None, **amounts: str) -> Resource:
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110", **amounts}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec or {},
        "status": {"conditions": list(conditions) or [condition("Ready")], "allocatable": allocatable},
    }


def event(kind: str, name: str, reason: str, message: str, age: float = 30, type_: str = "Warning") -> Resource:
    about = {"kind": kind, "name": name}
    return {
        "involvedObject": about,
        "type": type_,
        "reason": reason,
        "message": message,
        "firstTimestamp": ago(age),
        "lastTimestamp": ago(age),
    }


def pod_event(reason: str, message: str, age: float = 30, type_: str = "Warning") -> Resource:
    return event("Pod", "train-master-0", reason, message, age, type_)


def job_event(reason: str, message: str, age: float = 30) -> Resource:
    return event("PyTorchJob", "train", reason, message, age)


def snapshot(*pods: Resource, of: Resource | None = None, **fields: Any) -> Snapshot:
    """Of the job ``of`` with these pods; by default both run."""
    given = pods or (pod(), pod("worker"))
    return Snapshot(of or job(), NOW, pods=tuple(given), nodes=fields.pop("nodes", (node(),)), **fields)


def changed(found: Snapshot, **fields: Any) -> Snapshot:
    return dataclasses.replace(found, **fields)
