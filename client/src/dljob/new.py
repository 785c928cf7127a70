"""Manifests of new jobs, for any operator that has the kinds of kubeflow.org. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dljob.kinds import ALL, FIRST_CONTAINER, Kind
from dljob.view import QUEUE_LABEL

GROUP = "kubeflow.org"
FRAMEWORKS = ("pytorch", "tensorflow", "jax", "mpi", "mxnet", "paddle", "xgboost", "caffe2")
_FIRST = {"pytorch": "Master", "xgboost": "Master"}
"""The type of the first worker."""
_SERVERS = {"tensorflow": "PS", "mxnet": "Server"}
_VERSIONS = {"mpi": "v2beta1"}


class Impossible(ValueError):
    """No such job exists; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a user wants to run."""

    framework: str
    name: str
    image: str
    program: Sequence[str] = ()
    """Command and arguments; by default those of the image."""
    workers: int = 1
    """Of PyTorch and XGBoost the first one is the master."""
    servers: int = 0
    """Parameter servers of TensorFlow and MXNet."""
    gpus: int = 0
    """Of each worker."""
    gpu_resource: str = "nvidia.com/gpu"
    cpu: str = ""
    memory: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    redis: str = ""
    """The Redis server at which several workers of Caffe2 meet."""
    queue: str = ""
    namespace: str = ""


def manifest(plan: Plan) -> dict[str, Any]:
    """The job. Raises Impossible."""
    kind = _kind(plan.framework)
    version = _VERSIONS.get(plan.framework, kind.versions[0])
    _check(plan)
    metadata: dict[str, Any] = {"name": plan.name}
    if plan.namespace:
        metadata["namespace"] = plan.namespace
    if plan.queue:
        metadata["labels"] = {QUEUE_LABEL: plan.queue}
    container = kind.container if kind.container != FIRST_CONTAINER else plan.framework
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind.kind,
        "metadata": metadata,
        "spec": _spec(plan, kind, container),
    }


def _kind(framework: str) -> Kind:
    found = [one for one in ALL if one.group == GROUP and one.framework == framework]
    if not found:
        raise Impossible(f"{framework} is no framework: write one of {', '.join(FRAMEWORKS)}")
    return found[0]


def _check(plan: Plan) -> None:
    if plan.workers < 1:
        raise Impossible("a job has at least one worker")
    if plan.servers and plan.framework not in _SERVERS:
        raise Impossible(f"{plan.framework} has no servers: only {' and '.join(_SERVERS)} have")
    if plan.redis and plan.framework != "caffe2":
        raise Impossible(f"{plan.framework} meets at no Redis server: only caffe2 does")
    if plan.framework == "caffe2" and plan.workers > 1 and not plan.redis:
        raise Impossible("several workers of caffe2 meet at a Redis server: name it with --redis")
    if not plan.image:
        raise Impossible("the image is missing")


def _spec(plan: Plan, kind: Kind, container: str) -> dict[str, Any]:
    worker = _template(plan, container, computes=True)
    if plan.framework == "caffe2":
        backend = {"backendType": "redis", "redisHost": plan.redis} if plan.redis else {"backendType": "none"}
        return {"backendSpecs": backend, kind.flavors[-1].fields[0]: {"replicas": plan.workers, "template": worker}}
    replicas: dict[str, Any] = {}
    left = plan.workers
    if plan.framework == "mxnet":
        replicas["Scheduler"] = _replicas(1, _template(plan, container, computes=False))
    if plan.framework in _SERVERS and (plan.servers or plan.framework == "mxnet"):
        replicas[_SERVERS[plan.framework]] = _replicas(plan.servers or 1, _template(plan, container, computes=False))
    if plan.framework == "mpi":
        replicas["Launcher"] = _replicas(1, _template(plan, container, computes=False))
        worker = _template(plan, container, computes=True, runs=False)
    if plan.framework in _FIRST:
        replicas[_FIRST[plan.framework]] = _replicas(1, worker)
        left -= 1
    if left:
        replicas["Worker"] = _replicas(left, worker)
    field_ = next(field for one in kind.flavors for field in one.fields if field.endswith("ReplicaSpecs"))
    more: dict[str, Any] = {"slotsPerWorker": plan.gpus or 1} if plan.framework == "mpi" else {}
    return {**more, field_: replicas}


def _replicas(count: int, template: dict[str, Any]) -> dict[str, Any]:
    # a template of its own: YAML writes one that two types share as an alias
    return {"replicas": count, "template": copy.deepcopy(template)}


def _template(plan: Plan, container: str, *, computes: bool, runs: bool = True) -> dict[str, Any]:
    """Of a replica that ``computes``, and so gets the GPUs; ``runs`` the program, or else what the image starts."""
    made: dict[str, Any] = {"name": container, "image": plan.image}
    if plan.program and runs:
        made["command"] = list(plan.program)
    if plan.env:
        made["env"] = [{"name": name, "value": value} for name, value in plan.env.items()]
    asked = {name: value for name, value in (("cpu", plan.cpu), ("memory", plan.memory)) if value}
    limits: dict[str, Any] = {"memory": plan.memory} if plan.memory else {}
    if computes and plan.gpus:
        limits[plan.gpu_resource] = plan.gpus
    resources = {name: values for name, values in (("requests", asked), ("limits", limits)) if values}
    if resources:
        made["resources"] = resources
    return {"spec": {"containers": [made]}}
