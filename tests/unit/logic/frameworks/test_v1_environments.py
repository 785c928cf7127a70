"""The environments of training-operator v1 (1.9, 1.8 for MXJob), byte by byte, of jobs with one Service a replica."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import (
    JAX,
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    jaxjob,
    manifest_of,
    mxjob,
    paddlejob,
    pytorchjob,
    tfjob,
    xgboostjob,
)

V1TF = ("kubeflow.org/v1", "tfReplicaSpecs")
DENSE = (
    '{"cluster":{"chief":["example-job-chief-0.default.svc:2222"],"ps":["example-job-ps-0.default.svc:2222"],'
    '"worker":["example-job-worker-0.default.svc:2222","example-job-worker-1.default.svc:2222"]},'
    '"task":{"type":"worker","index":1},"environment":"cloud"}'
)
SPARSE = (
    '{"cluster":{"worker":{"1":"example-job-worker-1.default.svc:2222"},"ps":["example-job-ps-0.default.svc:2222"]},'
    '"task":{"type":"worker","index":1}}'
)
MX_CONFIG = (
    '{"cluster":{"scheduler":[{"url":"example-job-scheduler-0","port":9091}],'
    '"server":[{"url":"example-job-server-0","port":9091}],"worker":[{"url":"example-job-worker-0","port":9091}]},'
    '"labels":{"scheduler":"","server":"","worker":""},"task":{"type":"worker","index":0}}'
)


def elastic(resource: dict[str, Any]) -> dict[str, Any]:
    resource["spec"]["enableDynamicWorker"] = True
    return resource


PYTORCH_WORKER = {
    "PYTHONUNBUFFERED": "1",
    "MASTER_PORT": "23456",
    "PET_MASTER_PORT": "23456",
    "MASTER_ADDR": "example-job-master-0",
    "PET_MASTER_ADDR": "example-job-master-0",
    "WORLD_SIZE": "3",
    "RANK": "2",
    "PET_NODE_RANK": "2",
    "PET_NPROC_PER_NODE": "auto",
    "PET_NNODES": "3",
}
PYTORCH_ELASTIC = {
    "PYTHONUNBUFFERED": "1",
    "PET_NPROC_PER_NODE": "auto",
    "PET_RDZV_ENDPOINT": "example-job-worker-0:23456",
    "PET_RDZV_BACKEND": "c10d",
    "PET_NNODES": "1:2",
}
XGBOOST_WORKER = {
    "MASTER_PORT": "9999",
    "MASTER_ADDR": "example-job-master-0",
    "WORLD_SIZE": "3",
    "RANK": "2",
    "PYTHONUNBUFFERED": "1",
    "WORKER_PORT": "9999",
    "WORKER_ADDRS": "example-job-worker-0,example-job-worker-1",
}
MXNET_WORKER = {
    "MX_CONFIG": MX_CONFIG,
    "DMLC_PS_ROOT_PORT": "9091",
    "DMLC_PS_ROOT_URI": "example-job-scheduler-0",
    "DMLC_NUM_SERVER": "1",
    "DMLC_NUM_WORKER": "1",
    "DMLC_ROLE": "worker",
    "DMLC_USE_KUBERNETES": "1",
    "DMLC_WORKER_ID": "0",
}
PADDLE_WORKER = {
    "PYTHONUNBUFFERED": "1",
    "PADDLE_JOB_ID": "example-job",
    "PADDLE_NNODES": "2",
    "PADDLE_MASTER": "example-job-worker-0:36543",
}
PADDLE_PS = {**PADDLE_WORKER, "PADDLE_MASTER": "example-job-master-0:36543", "PADDLE_TRAINER_NUM": "1"}
JAX_WORKER = {
    "PYTHONUNBUFFERED": "1",
    "COORDINATOR_PORT": "6666",
    "COORDINATOR_ADDRESS": "example-job-worker-0",
    "NUM_PROCESSES": "2",
    "PROCESS_ID": "1",
}
GOLDEN = [
    ("TFJob", TENSORFLOW, tfjob(*V1TF, chief=1, ps=1, worker=2), "Worker", 1, {"TF_CONFIG": DENSE}),
    ("TFJob, elastic", TENSORFLOW, elastic(tfjob(*V1TF, ps=1, worker=2)), "Worker", 1, {"TF_CONFIG": SPARSE}),
    ("TFJob of one", TENSORFLOW, tfjob(*V1TF, worker=1), "Worker", 0, {}),
    ("PyTorchJob", PYTORCH, pytorchjob(1, 2), "Worker", 1, PYTORCH_WORKER),
    (
        "PyTorchJob, elastic",
        PYTORCH,
        pytorchjob(0, 2, elasticPolicy={"minReplicas": 1, "maxReplicas": 2, "rdzvBackend": "c10d"}),
        "Worker",
        1,
        PYTORCH_ELASTIC,
    ),
    ("MXJob", MXNET, mxjob("example-job").v1().servers(1).workers(1).resource(), "Worker", 0, MXNET_WORKER),
    ("XGBoostJob", XGBOOST, xgboostjob(1, 2), "Worker", 1, XGBOOST_WORKER),
    ("PaddleJob", PADDLE, paddlejob(0, 2), "Worker", 1, PADDLE_WORKER),
    ("PaddleJob with a master", PADDLE, paddlejob(1, 1), "Worker", 0, PADDLE_PS),
    ("JAXJob", JAX, jaxjob(2), "Worker", 1, JAX_WORKER),
]
OURS = {
    *("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "PADDLE_SERVER_NUM", "PADDLE_RANK"),
    *("PET_MAX_RESTARTS", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"),
    *("PS_HEARTBEAT_INTERVAL", "PS_HEARTBEAT_TIMEOUT"),
}
"""Variables that v1 does not set: docs/compatibility.md has the reasons."""
IDS = [row[0] for row in GOLDEN]


def environment(
    framework: Framework, resource: Mapping[str, Any], type_: str, index: int, scope: str
) -> dict[str, str]:
    annotated = {**resource, "metadata": {**resource["metadata"], "annotations": {"dljob.operator/services": scope}}}
    pod = manifest_of(parse_job(annotated, framework), type_, index, framework=framework)
    (container,) = pod["spec"]["containers"]
    return {one["name"]: one["value"] for one in container["env"] if one["name"] not in OURS}


@pytest.mark.parametrize(("kind", "framework", "resource", "type_", "index", "golden"), GOLDEN, ids=IDS)
def test_with_one_service_a_replica_it_is_that_of_v1(
    kind: str, framework: Framework, resource: dict[str, Any], type_: str, index: int, golden: dict[str, str]
) -> None:
    assert environment(framework, resource, type_, index, "per-replica") == golden


@pytest.mark.parametrize(("kind", "framework", "resource", "type_", "index", "golden"), GOLDEN, ids=IDS)
def test_without_them_only_the_names_in_tf_config_lack_the_namespace(
    kind: str, framework: Framework, resource: dict[str, Any], type_: str, index: int, golden: dict[str, str]
) -> None:
    expected = {name: text.replace(".default.svc", "") for name, text in golden.items()}
    assert environment(framework, resource, type_, index, "per-job") == expected


def test_the_domain_that_v1_gets_from_its_own_environment() -> None:
    framework = dataclasses.replace(TENSORFLOW, settings={"clusterDomain": "ml.example"})
    found = environment(framework, tfjob(*V1TF, chief=1, ps=1, worker=2), "Worker", 1, "per-replica")
    assert found == {"TF_CONFIG": DENSE.replace(".svc:", ".svc.ml.example:")}
    found = environment(framework, tfjob(*V1TF, chief=1, ps=1, worker=2), "Worker", 1, "per-job")
    assert "ml.example" not in found["TF_CONFIG"]


@pytest.mark.parametrize("group", ["tensorflow.org", "kubeflow.org"])
def test_the_list_layout_has_the_short_names_of_its_operator(group: str) -> None:
    found = environment(TENSORFLOW, tfjob(f"{group}/v1alpha1", master=1, worker=1), "Worker", 0, "per-replica")
    assert found["TF_CONFIG"] == (
        '{"cluster":{"master":["master-76no-0:2222"],"worker":["worker-76no-0:2222"]},'
        '"task":{"type":"worker","index":0},"environment":"cloud"}'
    )
