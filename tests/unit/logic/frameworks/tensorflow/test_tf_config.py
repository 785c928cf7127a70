"""Golden strings of TF_CONFIG."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.frameworks.tensorflow.tf_config import (
    tensorflow_environment,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from support.builders import TENSORFLOW, environment_of, manifest_of, seen_from, tfjob

V1ALPHA1 = (
    '{"cluster":{"master":["master-76no-0.%(kind)s-76no:2222"],'
    '"ps":["ps-76no-0.%(kind)s-76no:2222","ps-76no-1.%(kind)s-76no:2222"],'
    '"worker":["worker-76no-0.%(kind)s-76no:2222"]},'
    '"task":{"type":"ps","index":1},"environment":"cloud"}'
)
V1 = (
    '{"cluster":{"chief":["example-job-chief-0:2222"],"evaluator":["example-job-evaluator-0:2222"],'
    '"ps":["example-job-ps-0:2222"],"worker":["example-job-worker-0:2222","example-job-worker-1:2222"]},'
    '"task":{"type":"worker","index":1},"environment":"cloud"}'
)


def read_by(resource: dict[str, Any], type_: str, index: int = 0) -> dict[str, str]:
    """The variables of a replica, by the filter alone."""
    return dict(tensorflow_environment(seen_from(parse_job(resource, TENSORFLOW), type_, index, TENSORFLOW)))


@pytest.mark.parametrize("group", ["tensorflow.org", "kubeflow.org"])
@pytest.mark.parametrize("field", ["replicaSpecs", "replica_specs"])
def test_v1alpha1(group: str, field: str) -> None:
    resource = tfjob(f"{group}/v1alpha1", field, master=1, worker=1, ps=2)
    assert read_by(resource, "PS", 1) == {"TF_CONFIG": V1ALPHA1 % {"kind": "tfjob"}}


def test_v1() -> None:
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2, ps=1, chief=1, evaluator=1)
    assert read_by(resource, "Worker", 1) == {"TF_CONFIG": V1}


def test_every_type_has_its_own_port() -> None:
    resource = tfjob(master=1, ps=1)
    resource["spec"]["replicaSpecs"][1]["tfPort"] = 3333
    cluster = json.loads(read_by(resource, "Master")["TF_CONFIG"])["cluster"]
    assert cluster == {"master": ["master-76no-0.tfjob-76no:2222"], "ps": ["ps-76no-0.tfjob-76no:3333"]}


def test_a_single_master_has_a_cluster_in_v1alpha1_and_none_in_v1() -> None:
    assert json.loads(read_by(tfjob(master=1), "Master")["TF_CONFIG"])["task"] == {"type": "master", "index": 0}
    assert read_by(tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=1), "Worker") == {}


def test_only_the_container_tensorflow_reads_it() -> None:
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", master=1, worker=1)
    worker = resource["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"].append({"name": "sidecar", "image": "x"})
    pod = manifest_of(parse_job(resource, TENSORFLOW), "worker", framework=TENSORFLOW)
    assert set(environment_of(pod, "tensorflow")) == {"TF_CONFIG"}
    assert environment_of(pod, "sidecar") == {}


# --- elastic workers: the same bytes as in training-operator


@pytest.mark.parametrize(
    ("type_", "index", "golden"),
    [
        (
            "Worker",
            1,
            '{"cluster":{"worker":{"1":"example-job-worker-1:2222"},"ps":["example-job-ps-0:2222","example-job-ps-1:2222"]},'
            '"task":{"type":"worker","index":1}}',
        ),
        ("PS", 1, '{"cluster":{"worker":{},"ps":["example-job-ps-1:2222"]},"task":{"type":"ps","index":1}}'),
        ("Chief", 0, '{"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}}'),
        ("Evaluator", 0, '{"cluster":{"worker":{},"ps":[]},"task":{"type":"evaluator","index":0}}'),
    ],
)
def test_sparse(type_: str, index: int, golden: str) -> None:
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2, ps=2, evaluator=1)
    resource["spec"]["enableDynamicWorker"] = True
    assert read_by(resource, type_, index) == {"TF_CONFIG": golden}


def test_a_worker_without_parameter_servers_reads_of_none() -> None:
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2)
    resource["spec"]["enableDynamicWorker"] = True
    config = json.loads(read_by(resource, "Worker")["TF_CONFIG"])
    assert config["cluster"] == {"worker": {"0": "example-job-worker-0:2222"}, "ps": []}


@pytest.mark.parametrize("given", [False, None])
def test_dense_unless_asked_for(given: bool | None) -> None:
    resource = tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2, ps=1, chief=1, evaluator=1)
    resource["spec"]["enableDynamicWorker"] = given
    assert read_by(resource, "Worker", 1) == {"TF_CONFIG": V1}
