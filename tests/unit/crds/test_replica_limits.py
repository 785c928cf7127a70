"""The largest number of replicas that a schema admits: what never fits into a process's variables is refused at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import MAX_REPLICAS
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from devtools.definitions import definitions
from support.builders import CAFFE2, MXNET, TENSORFLOW, XGBOOST, Resource

DEFINITIONS = {f"{name}.yaml": definition for name, definition in definitions().items()}
VERSIONS = [
    pytest.param(name, version["schema"]["openAPIV3Schema"]["properties"]["spec"], id=f"{name} {version['name']}")
    for name, definition in DEFINITIONS.items()
    for version in definition["spec"]["versions"]
]
COUNTS = ("replicas", "count", "maxReplicas")
OF_RESTARTS = "restartsWithin"
"""The field with a count of something else."""

CAFFE2_CONFIG, MX_CONFIG, TF_CONFIG, WORKER_ADDRS = 6290, 4127, 6002, 9440
"""Hosts of the shortest names that fit into the variable of that name."""

SMALLER = {
    "caffe2jobs.kubeflow.org.yaml": {"replicaSpecs.replicas": CAFFE2_CONFIG},
    "mxjobs.kubeflow.org.yaml": {
        "mxReplicaSpecs.*.replicas": MX_CONFIG,
        "mxReplicaSpecs.*.groups[].replicas": MX_CONFIG,
    },
    "tfjobs.kubeflow.org.yaml": {"replicaSpecs[].replicas": TF_CONFIG, "replica_specs[].replicas": TF_CONFIG},
    "tfjobs.tensorflow.org.yaml": {"replicaSpecs[].replicas": TF_CONFIG, "replica_specs[].replicas": TF_CONFIG},
    "xgboostjobs.kubeflow.org.yaml": {
        "xgbReplicaSpecs.*.replicas": WORKER_ADDRS,
        "xgbReplicaSpecs.*.groups[].replicas": WORKER_ADDRS,
    },
}
"""By file and field, what is less than a million. Processes of the others need one address alone, or, as in a TFJob of
v1 with enableDynamicWorker, may do without the list."""


def counts(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every field with a number of replicas, and its path; not those of templates, which have none."""
    for name, inner in schema.get("properties", {}).items():
        where = f"{path}.{name}".lstrip(".")
        if name in COUNTS and inner["type"] == "integer":
            yield where, inner
        if name != OF_RESTARTS:
            yield from counts(inner, where)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield from counts(schema[key], path + mark)


@pytest.mark.parametrize(("name", "spec"), VERSIONS)
def test_every_number_of_replicas_has_a_maximum(name: str, spec: Mapping[str, Any]) -> None:
    found = dict(counts(spec))
    expected = dict.fromkeys(found, MAX_REPLICAS) | SMALLER.get(name, {})
    assert found
    assert {path: schema.get("maximum") for path, schema in found.items()} == expected


def test_elastic_policies_have_one_too() -> None:
    paths = {f"{name}: {path}" for name, spec in (each.values for each in VERSIONS) for path, _ in counts(spec)}  # type: ignore[misc]
    assert {path for path in paths if path.endswith("maxReplicas")} == {
        "paddlejobs.kubeflow.org.yaml: elasticPolicy.maxReplicas",
        "pytorchjobs.kubeflow.org.yaml: elasticPolicy.maxReplicas",
    }


# --- that no job with more could start, and that one with as many can

Job = Callable[[int], Resource]


def job(api_version: str, kind: str, spec: Any) -> Resource:
    metadata = {"name": "a", "namespace": "default", "uid": "1", "generation": 1}
    return {"apiVersion": f"kubeflow.org/{api_version}", "kind": kind, "metadata": metadata, "spec": spec}


def entry(container: str, replicas: int, port: str = "") -> Resource:
    ports = [{"name": port, "containerPort": 1}] if port else []
    template = {"spec": {"containers": [{"name": container, "image": "a", "ports": ports}]}}
    return {"replicas": replicas, "template": template}


def mx(type_: str, scheduler: int = 0) -> Job:
    def make(replicas: int) -> Resource:
        both = {"Scheduler": scheduler, type_: replicas}
        entries = {name: entry("mxnet", count, "mxjob-port") for name, count in both.items() if count}
        return job("v1", "MXJob", {"jobMode": "MXTrain" if scheduler else "MXTune", "mxReplicaSpecs": entries})

    return make


def tf(type_: str) -> Job:
    def make(replicas: int) -> Resource:
        both = {"MASTER": 1, type_: replicas}
        entries = [{**entry("tensorflow", count), "tfReplicaType": name, "tfPort": 1} for name, count in both.items()]
        return job("v1alpha1", "TFJob", {"RuntimeId": "a", "replicaSpecs": entries})

    return make


def caffe2(replicas: int) -> Resource:
    backend = {"backendType": "nfs", "nfsPath": "/a"}
    return job("v1alpha1", "Caffe2Job", {"backendSpecs": backend, "replicaSpecs": entry("caffe2", replicas)})


def xgboost(replicas: int) -> Resource:
    both = {"Master": 1, "Worker": replicas}
    return job("v1", "XGBoostJob", {"xgbReplicaSpecs": {name: entry("xgboost", both[name]) for name in both}})


SHORTEST: list[tuple[str, Framework, int, Job]] = [
    ("CAFFE2_CONFIG", CAFFE2, CAFFE2_CONFIG, caffe2),
    ("MX_CONFIG", MXNET, MX_CONFIG, mx("Tuner")),
    ("TF_CONFIG", TENSORFLOW, TF_CONFIG, tf("PS")),
    ("WORKER_ADDRS", XGBOOST, WORKER_ADDRS, xgboost),
]
LONGER: list[tuple[str, Framework, int, Job]] = [
    *(("MX_CONFIG", MXNET, MX_CONFIG, mx(type_)) for type_ in ("TunerServer", "TunerTracker")),
    *(("MX_CONFIG", MXNET, MX_CONFIG, mx(type_, scheduler=1)) for type_ in ("Server", "Worker")),
    ("TF_CONFIG", TENSORFLOW, TF_CONFIG, tf("WORKER")),
]


@pytest.mark.parametrize(("variable", "framework", "most", "make"), SHORTEST, ids=[one[0] for one in SHORTEST])
def test_a_job_of_the_shortest_names_can_have_as_many_replicas(
    variable: str, framework: Framework, most: int, make: Job
) -> None:
    assert max(group.replicas for group in parse_job(make(most), framework).groups) == most


@pytest.mark.parametrize(
    ("variable", "framework", "most", "make"),
    [*SHORTEST, *LONGER],
    ids=[f"{one[0]} {number}" for number, one in enumerate([*SHORTEST, *LONGER])],
)
def test_no_job_can_have_more(variable: str, framework: Framework, most: int, make: Job) -> None:
    with pytest.raises(InvalidJob, match=f"the variable {variable} of .* a process can have 131071"):
        parse_job(make(most + 1), framework)


def test_workers_of_a_tfjob_may_be_more_where_they_need_no_list() -> None:
    entries = {"Worker": entry("tensorflow", 19_000)}
    made = job("v1", "TFJob", {"enableDynamicWorker": True, "tfReplicaSpecs": entries})
    assert parse_job(made, TENSORFLOW).total == 19_000
