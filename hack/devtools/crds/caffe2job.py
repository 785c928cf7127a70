"""Caffe2Job, in its one flavor."""

from __future__ import annotations

from typing import Any

from devtools.crds.document import definition, resource
from devtools.crds.openapi import Schema, integer, record, rule, string
from devtools.crds.options import OPTION_RULES, options, runtime_id
from devtools.crds.replicas import ReplicaSingle

_JOB = (
    "A training job of Caffe2: equal workers that each train on a shard of the data and share their gradients. It has "
    "succeeded when all of them have."
)
_REPLICAS = ReplicaSingle(field="replicaSpecs", type="Worker", container="caffe2")
_BACKEND = "self.backendSpecs"
_COUNT = f"self.{_REPLICAS.field}.replicas"


def _given(field: str) -> str:
    """The CEL expression that the backend has ``field``, and not empty."""
    return f"has({_BACKEND}) && has({_BACKEND}.{field}) && {_BACKEND}.{field} != ''"


_TYPE = f"({_given('backendType')} ? {_BACKEND}.backendType : {_COUNT} > 1 ? 'redis' : 'none')"


def _backend() -> Schema:
    return record(
        "How the workers find one another. What belongs to a backend that is not chosen has no effect.",
        {
            "backendType": string(
                "redis, nfs, or none for a single replica. Where absent, none for a single replica and redis for more.",
                choices=["redis", "nfs", "none", ""],
            ),
            "redisHost": string("Name of a Redis server, such as a Service of this namespace."),
            "redisPort": integer("Its port; 6379 where absent.", minimum=1, maximum=65535),
            "nfsPath": string("Directory that all replicas have mounted at this path of theirs, and may write to."),
        },
    )


def _schema() -> Schema:
    spec = record(
        "What to train, with how many replicas, and how these meet.",
        {
            "backendSpecs": _backend(),
            _REPLICAS.field: _REPLICAS.schema(),
            "RuntimeID": runtime_id("RuntimeID"),
            **options("caffe2", (), ""),
            "terminationPolicy": record(
                "Names the chief, as old manifests do. It decides nothing: all replicas must succeed.", {}, open_=True
            ),
        },
        required=[_REPLICAS.field],
        rules=[
            rule(
                f"{_TYPE} != 'redis' || {_given('redisHost')}",
                message="backendSpecs.redisHost is missing: name the Redis server at which the replicas meet, or "
                "choose backendType nfs (or, for 1 replica, none)",
                field=".backendSpecs",
            ),
            rule(
                f"{_TYPE} != 'nfs' || {_given('nfsPath')}",
                message="backendSpecs.nfsPath is missing: name the directory, mounted in all replicas, in which they "
                "meet",
                field=".backendSpecs",
            ),
            rule(
                f"{_TYPE} != 'none' || {_COUNT} == 1",
                message="backendSpecs.backendType is none, and several replicas could not find one another: choose "
                "redis or nfs, or 1 replica",
                field=".backendSpecs",
            ),
            rule(
                "!has(self.RuntimeID) || !has(self.RuntimeId) || self.RuntimeID == self.RuntimeId",
                message="RuntimeID and RuntimeId are two names of one setting and differ here: keep one of them",
                field=".RuntimeID",
            ),
            *OPTION_RULES,
        ],
    )
    return resource(_JOB, spec, _REPLICAS.name_rules())


def definitions() -> list[dict[str, Any]]:
    """The CRD of this kind."""
    return [definition("kubeflow.org", "Caffe2Job", {"v1alpha1": _schema()}, stored="v1alpha1", short_names=["c2j"])]
