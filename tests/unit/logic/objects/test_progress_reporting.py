"""Which pods report, and what they get for it."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import progress_reporting
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.batch_job import wrap
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.pods import build_pod
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.shared.progress import NO_RANK, RANK_0, Endpoint
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import PodToCreate
from support.builders import (
    JAX,
    MPI,
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    jaxjob,
    mpijob,
    mpijob_v1,
    mxjob,
    paddlejob,
    pod_context,
    pytorchjob,
    tfjob,
    xgboostjob,
)

ON = Endpoint("https://op:8444/progress", "-----BEGIN CERTIFICATE-----\n", RANK_0)
OPT_IN = dataclasses.replace(ON, ranks=NO_RANK)
NAMES = {f"KUBEFLOW_TRAINER_SERVER_{name}" for name in ("URL", "TOKEN", "CA_CERT")}


def parsed(resource: dict[str, Any], framework: Framework, progress: str = "") -> DLJob:
    resource = copy.deepcopy(resource)
    if progress:
        resource["spec"].setdefault("runPolicy", {})["progress"] = progress
    return parse_job(resource, framework)


def pods_of(job: DLJob, framework: Framework, endpoint: Endpoint | None) -> dict[str, dict[str, Any]]:
    context = dataclasses.replace(pod_context(job, framework), progress=endpoint)
    return {
        f"{group.type}-{index}".lower(): dict(build_pod(job, PodToCreate(group, index, 0), context))
        for group, index in job.tasks()
    }


def roles(job: DLJob, framework: Framework, endpoint: Endpoint | None = ON) -> dict[str, str]:
    found = {name: pod["metadata"]["annotations"] for name, pod in pods_of(job, framework, endpoint).items()}
    of = {name: annotations.get("dljob.operator/reports-progress") for name, annotations in found.items()}
    return {name: role for name, role in of.items() if role}


KINDS: list[tuple[Framework, dict[str, Any], list[str], list[str]]] = [
    (TENSORFLOW, tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=2, ps=1, evaluator=1), ["chief-0"],
        ["worker-0", "worker-1", "evaluator-0"]),
    (TENSORFLOW, tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2, ps=1), ["worker-0"], ["worker-1"]),
    (TENSORFLOW, tfjob(master=1, worker=1), ["master-0"], ["worker-0"]),
    (PYTORCH, pytorchjob(master=1, worker=2), ["master-0"], ["worker-0", "worker-1"]),
    (PYTORCH, pytorchjob(worker=2), ["worker-0"], ["worker-1"]),
    (PYTORCH, pytorchjob(worker=2, elasticPolicy={"minReplicas": 1, "maxReplicas": 3}), ["worker-0", "worker-1"], []),
    (JAX, jaxjob(worker=2), ["worker-0"], ["worker-1"]),
    (XGBOOST, xgboostjob(worker=1), ["master-0"], ["worker-0"]),
    (PADDLE, paddlejob(master=1, worker=2), ["worker-0"], ["worker-1"]),
    (MPI, mpijob(2), ["launcher-0", "worker-0"], ["worker-1"]),
    (MPI, mpijob_v1(2), ["launcher-0", "worker-0"], ["worker-1"]),
]  # fmt: skip
"""Each with its replicas whose report is the job's, and the other ranks."""


@pytest.mark.parametrize(("framework", "resource", "first", "others"), KINDS)
def test_rank_0_reports_and_where_asked_the_others(
    framework: Framework, resource: dict[str, Any], first: list[str], others: list[str]
) -> None:
    job = parsed(resource, framework)
    assert roles(job, framework) == dict.fromkeys(first, "job")
    assert roles(job, framework, OPT_IN) == {}
    assert roles(job, framework, None) == {}
    asks = parsed(resource, framework, "AllRanks")
    assert roles(asks, framework) == {**dict.fromkeys(first, "job"), **dict.fromkeys(others, "rank")}
    assert roles(parsed(resource, framework, "Rank0"), framework, OPT_IN) == dict.fromkeys(first, "job")
    assert roles(parsed(resource, framework, "None"), framework) == {}
    assert roles(asks, framework, None) == {}, "no endpoint is there"


def test_mxnets_scheduler_and_servers_do_not_train() -> None:
    job = mxjob().v1().servers(1).workers(2).job()
    assert roles(job, MXNET) == {"worker-0": "job"}


def test_what_a_pod_gets() -> None:
    framework = JAX
    before = pods_of(parsed(jaxjob(worker=2), framework), framework, None)
    after = pods_of(parsed(jaxjob(worker=2), framework), framework, ON)
    assert after["worker-1"] == before["worker-1"]
    pod = after["worker-0"]
    container = pod["spec"]["containers"][0]
    environment = {one["name"]: one["value"] for one in container["env"] if one["name"] in NAMES}
    folder = "/var/run/secrets/dljob.operator/progress"
    assert environment == {
        "KUBEFLOW_TRAINER_SERVER_URL": "https://op:8444/progress",
        "KUBEFLOW_TRAINER_SERVER_TOKEN": f"{folder}/token",
        "KUBEFLOW_TRAINER_SERVER_CA_CERT": f"{folder}/ca.crt",
    }
    assert container["volumeMounts"][-1] == {"name": "dljob-progress", "mountPath": folder, "readOnly": True}
    token, authority = pod["spec"]["volumes"][-1]["projected"]["sources"]
    assert token["serviceAccountToken"] == {
        "audience": "dljob.operator/progress", "expirationSeconds": 3600, "path": "token",
    }  # fmt: skip
    (item,) = authority["downwardAPI"]["items"]
    assert item == {
        "path": "ca.crt",
        "fieldRef": {"fieldPath": "metadata.annotations['progress.dljob.operator/authority']"},
    }
    assert pod["metadata"]["annotations"]["progress.dljob.operator/authority"] == ON.authority
    hashes = {one["metadata"]["annotations"]["dljob.operator/spec-hash"] for one in (pod, before["worker-0"])}
    assert len(hashes) == 1, "to switch it on restarts no pod"


def test_the_pod_of_a_batch_job_has_the_certificate_too() -> None:
    framework = MPI
    pod = pods_of(parsed(mpijob(2), framework), framework, ON)["launcher-0"]
    template = wrap(parsed(mpijob(2), framework), pod)["spec"]["template"]
    assert template["metadata"]["annotations"]["progress.dljob.operator/authority"] == ON.authority


@pytest.mark.parametrize(
    "own",
    [
        {"env": [{"name": "KUBEFLOW_TRAINER_SERVER_URL", "value": "https://mine"}]},
        {"volumes": [{"name": "dljob-progress", "emptyDir": {}}]},
    ],
)
def test_what_the_template_has_of_that_name_stays(own: dict[str, Any]) -> None:
    framework = JAX
    resource = jaxjob(worker=1)
    spec = resource["spec"]["jaxReplicaSpecs"]["Worker"]["template"]["spec"]
    spec["containers"][0]["env"] = own.get("env", [])
    spec["volumes"] = own.get("volumes", [])
    assert roles(parsed(resource, framework), framework) == {}


def test_annotations_of_the_template_make_no_reporter() -> None:
    framework = JAX
    resource = jaxjob(worker=2)
    template = resource["spec"]["jaxReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"annotations": {"dljob.operator/reports-progress": "job", "mine": "x"}}
    pods = pods_of(parsed(resource, framework), framework, None)
    assert all("dljob.operator/reports-progress" not in one["metadata"]["annotations"] for one in pods.values())
    assert pods["worker-1"]["metadata"]["annotations"]["mine"] == "x"


def test_a_template_without_the_container_gets_nothing() -> None:
    metadata: dict[str, Any] = {"annotations": {}}
    spec: dict[str, Any] = {"containers": [{"name": "sidecar"}]}
    progress_reporting.join(ON, "job", "jax", metadata, spec)
    assert (metadata, spec) == ({"annotations": {}}, {"containers": [{"name": "sidecar"}]})
