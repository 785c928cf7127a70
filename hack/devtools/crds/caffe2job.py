"""Caffe2Job, which has a single API flavor."""

from __future__ import annotations

from typing import Any

from devtools.crds.document import definition, resource
from devtools.crds.openapi import Schema, integer, record, rule, string
from devtools.crds.options import OPTION_RULES, options, runtime_id
from devtools.crds.replicas import ReplicaSingle

_JOB = (
    "A Caffe2 training job: equal workers, each of which trains on a shard of the data and shares its gradients. The "
    "job succeeds when all workers have succeeded."
)
_REPLICAS = ReplicaSingle(field="replicaSpecs", type="Worker", container="caffe2")
_BACKEND = "self.backendSpecs"
_COUNT = f"self.{_REPLICAS.field}.replicas"


def _given(field: str) -> str:
    """A CEL expression that is true if the backend has a non-empty ``field``."""
    return f"has({_BACKEND}) && has({_BACKEND}.{field}) && {_BACKEND}.{field} != ''"


_TYPE = f"({_given('backendType')} ? {_BACKEND}.backendType : {_COUNT} > 1 ? 'redis' : 'none')"


def _backend() -> Schema:
    return record(
        "How the workers find each other. Fields of a backend that is not selected have no effect.",
        {
            "backendType": string(
                "redis, nfs, or none for a single replica. Default: none for a single replica, redis for more.",
                choices=["redis", "nfs", "none", ""],
            ),
            "redisHost": string("Name of a Redis server, such as a Service of this namespace."),
            "redisPort": integer("Port of the Redis server. Default: 6379.", minimum=1, maximum=65535),
            "nfsPath": string("Shared directory, mounted at this path and writable in all replicas."),
        },
    )


def _schema() -> Schema:
    spec = record(
        "The training program, its replicas, and how they find each other.",
        {
            "backendSpecs": _backend(),
            _REPLICAS.field: _REPLICAS.schema(),
            "RuntimeID": runtime_id("RuntimeID"),
            **options("caffe2", (), ""),
            "terminationPolicy": record(
                "Has no effect, as all replicas must succeed. Accepted so that old manifests apply.", {}, open_=True
            ),
        },
        required=[_REPLICAS.field],
        rules=[
            rule(
                f"{_TYPE} != 'redis' || {_given('redisHost')}",
                message="backendSpecs.redisHost is missing: set it to the Redis server of the rendezvous, or "
                "set backendType to nfs (or, for 1 replica, none)",
                field=".backendSpecs",
            ),
            rule(
                f"{_TYPE} != 'nfs' || {_given('nfsPath')}",
                message="backendSpecs.nfsPath is missing: set it to the rendezvous directory, mounted in all replicas",
                field=".backendSpecs",
            ),
            rule(
                f"{_TYPE} != 'none' || {_COUNT} == 1",
                message="backendSpecs.backendType is none, with which several replicas cannot find each other: set it "
                "to redis or nfs, or set replicas to 1",
                field=".backendSpecs",
            ),
            rule(
                "!has(self.RuntimeID) || !has(self.RuntimeId) || self.RuntimeID == self.RuntimeId",
                message="RuntimeID and RuntimeId are aliases and have different values: remove one of them",
                field=".RuntimeID",
            ),
            *OPTION_RULES,
        ],
    )
    return resource(_JOB, spec, _REPLICAS.name_rules())


def definitions() -> list[dict[str, Any]]:
    """The CRD of this kind."""
    return [definition("kubeflow.org", "Caffe2Job", {"v1alpha1": _schema()}, stored="v1alpha1", short_names=["c2j"])]
