"""A template's own hostname and subdomain are kept where the job does not need its own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import (
    CAFFE2,
    JAX,
    MPI,
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    caffe2job,
    echo_framework,
    echo_framework_of_flavor,
    echojob,
    grouped,
    jaxjob,
    manifest_of,
    mpijob,
    mpijob_v1,
    mxjob,
    paddlejob,
    pytorchjob,
    tfjob,
    xgboostjob,
)

Resource = dict[str, Any]
OWN = {"hostname": "coordinator", "subdomain": "mesh"}
TFJOB_V1 = ("kubeflow.org/v1", "tfReplicaSpecs")


def with_spec(resource: Resource, fields: Mapping[str, Any]) -> Resource:
    """``resource`` with these fields in the specs of all templates."""
    made = copy.deepcopy(resource)
    spec = made["spec"]
    holders = [spec] if isinstance(spec, list) else [v for k, v in spec.items() if k.lower().endswith("replicaspecs")]
    for holder in holders:
        entries = holder if isinstance(holder, list) else [holder] if "template" in holder else holder.values()
        for entry in entries:
            if "template" in entry:
                entry["template"]["spec"].update(copy.deepcopy(dict(fields)))
    return made


def names(framework: Framework, resource: Resource, type_: str, index: int = 0) -> tuple[Any, Any]:
    spec = manifest_of(parse_job(resource, framework), type_, index, framework=framework)["spec"]
    return spec.get("hostname"), spec.get("subdomain")


KEPT = ("coordinator", "mesh")


@pytest.mark.parametrize(
    ("framework", "resource", "type_", "index", "is_kept"),
    [
        pytest.param(PYTORCH, pytorchjob(1, 2), "Master", 0, True, id="the master's name has a Service"),
        pytest.param(PYTORCH, pytorchjob(1, 2), "Worker", 1, True, id="no process asks for a worker"),
        pytest.param(PYTORCH, pytorchjob(0, 3), "Worker", 0, True, id="workers without an address"),
        pytest.param(PYTORCH, pytorchjob(1, 0), "Master", 0, True, id="one replica"),
        pytest.param(
            PYTORCH, pytorchjob(0, 2, elasticPolicy={"maxReplicas": 3}), "Worker", 0, False, id="torchrun's rendezvous"
        ),
        pytest.param(PYTORCH, pytorchjob(0, 2, elasticPolicy={}), "Worker", 1, False, id="a rendezvous by default"),
        pytest.param(
            PYTORCH, pytorchjob(1, 2, elasticPolicy={"maxReplicas": 3}), "Worker", 1, False, id="beside a master"
        ),
        pytest.param(
            PYTORCH, pytorchjob(1, 2, elasticPolicy={"maxReplicas": 3}), "Master", 0, True, id="the master beside it"
        ),
        pytest.param(JAX, jaxjob(3), "Worker", 2, True, id="JAX asks for the coordinator only"),
        pytest.param(XGBOOST, xgboostjob(1, 2), "Master", 0, True, id="the tracker's name has a Service"),
        pytest.param(XGBOOST, xgboostjob(1, 2), "Worker", 0, False, id="LightGBM asks for the workers"),
        pytest.param(PADDLE, paddlejob(0, 2), "Worker", 1, True, id="Paddle asks for worker 0 only"),
        pytest.param(TENSORFLOW, tfjob(*TFJOB_V1, worker=2), "Worker", 0, False, id="TF_CONFIG"),
        pytest.param(TENSORFLOW, tfjob(*TFJOB_V1, chief=1, worker=2), "Chief", 0, True, id="the chief in TF_CONFIG"),
        pytest.param(TENSORFLOW, tfjob(*TFJOB_V1, worker=1), "Worker", 0, True, id="one TensorFlow process"),
        pytest.param(TENSORFLOW, tfjob(master=1, worker=2), "Master", 0, False, id="list: names with the subdomain"),
        pytest.param(MXNET, mxjob().v1().workers(2).resource(), "Worker", 0, False, id="MX_CONFIG"),
        pytest.param(MXNET, mxjob().v1().workers(2).resource(), "Scheduler", 0, True, id="the scheduler in MX_CONFIG"),
        pytest.param(MXNET, mxjob().v1alpha1().resource(), "Scheduler", 0, False, id="list of MXNet"),
        pytest.param(MXNET, mxjob().mpba().resource(), "Scheduler", 0, False, id="list as the spec"),
        pytest.param(MPI, mpijob(), "Launcher", 0, False, id="workers reach the launcher by its hostname"),
        pytest.param(MPI, mpijob(), "Worker", 0, False, id="the hostfile"),
        pytest.param(MPI, mpijob_v1(), "Worker", 0, False, id="the hostfile of v1"),
        pytest.param(CAFFE2, caffe2job(2), "Worker", 0, False, id="CAFFE2_CONFIG"),
        pytest.param(CAFFE2, caffe2job(1, backendSpecs={}), "Worker", 0, True, id="one Caffe2 worker"),
    ],
)
def test_they_are_kept_unless_the_job_needs_its_own(
    framework: Framework, resource: Resource, type_: str, index: int, is_kept: bool
) -> None:
    ours = names(framework, resource, type_, index)
    assert all(ours)
    assert names(framework, with_spec(resource, OWN), type_, index) == (KEPT if is_kept else ours)


@pytest.mark.parametrize("name", OWN)
def test_one_of_them_is_kept_alone(name: str) -> None:
    """As under training-operator, whose pods have neither by default."""
    one = {name: OWN[name]}
    spec = manifest_of(parse_job(with_spec(pytorchjob(1, 1), one), PYTORCH), "worker", framework=PYTORCH)["spec"]
    assert {key: spec[key] for key in OWN if key in spec} == one


@pytest.mark.parametrize("empty", ["", None])
def test_an_empty_one_is_none(empty: object) -> None:
    resource = pytorchjob(1, 1)
    assert names(PYTORCH, with_spec(resource, {"hostname": empty}), "worker") == names(PYTORCH, resource, "worker")


def test_a_template_without_them_has_the_jobs() -> None:
    resource = pytorchjob(1, 1)
    ours = names(PYTORCH, resource, "worker")
    resource["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"].update(OWN)
    assert names(PYTORCH, resource, "worker") == ours
    assert names(PYTORCH, resource, "master") == KEPT


@pytest.mark.parametrize(
    "container",
    [
        {"args": ["--peer", "example-job-worker-1:29500"]},
        {"env": [{"name": "PEER", "value": "example-job-worker-1"}]},
    ],
)
def test_a_template_that_names_a_worker_needs_its_name(container: Resource) -> None:
    resource = with_spec(pytorchjob(1, 2), OWN)
    resource["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0].update(container)
    assert names(PYTORCH, resource, "worker", 1) == (
        "example-job-worker-1",
        names(PYTORCH, pytorchjob(1, 1), "worker")[1],
    )
    assert names(PYTORCH, resource, "master") == KEPT


def test_a_longer_name_is_another_one() -> None:
    resource = with_spec(pytorchjob(1, 2), OWN)
    container = resource["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0]
    container["args"] = ["my-example-job-worker-1", "example-job-worker-1-data", "example-job-master-0"]
    assert names(PYTORCH, resource, "worker", 1) == KEPT


def test_the_template_of_a_group() -> None:
    resource = grouped(pytorchjob(1, 2), "Worker", large=(1, {}))
    group = resource["spec"]["pytorchReplicaSpecs"]["Worker"]["groups"][0]
    group["template"]["spec"].update(OWN)
    assert names(PYTORCH, resource, "worker", 0) == KEPT
    assert names(PYTORCH, resource, "worker", 1)[0] == "example-job-worker-1"


def test_hooks_of_another_framework() -> None:
    own = with_spec(echojob(), OWN)
    flavor = {"names": "job", "status": "v1"}
    plain = echo_framework_of_flavor(**flavor)
    assert names(plain, own, "follower") == KEPT, "its processes get the leader's name only"
    itself = echo_framework(hooks={"environment": {"ECHO_SELF": "{host}"}})
    assert names(itself, own, "follower")[0] == "hello-follower-0"


# --- setHostnameAsFQDN


def fqdn(name: str, **fields: Any) -> Any:
    resource = with_spec(pytorchjob(1, 1), {"setHostnameAsFQDN": True, **fields})
    resource["metadata"]["name"] = name
    return manifest_of(parse_job(resource, PYTORCH), "master", framework=PYTORCH)["spec"]["setHostnameAsFQDN"]


def test_a_full_name_that_linux_cannot_have_is_not_the_hostname() -> None:
    spec = manifest_of(parse_job(pytorchjob(1, 1), PYTORCH), "master", framework=PYTORCH)["spec"]
    rest = len(f"-master-0.{spec['subdomain']}.default.svc.cluster.local")
    assert fqdn("f" * (64 - rest)) is True
    assert fqdn("f" * (65 - rest)) is False
    assert fqdn("f" * 50, hostNetwork=True) is True, "the pod has the name of its node"
    assert fqdn("f" * 50, **OWN) is True, "coordinator.mesh.default.svc.cluster.local is short"


def test_all_replicas_have_the_same_kind_of_hostname() -> None:
    spec = manifest_of(parse_job(pytorchjob(1, 1), PYTORCH), "worker", framework=PYTORCH)["spec"]
    rest = len(f"-worker-0.{spec['subdomain']}.default.svc.cluster.local")
    resource = with_spec(pytorchjob(1, 11), {"setHostnameAsFQDN": True})
    resource["metadata"]["name"] = "f" * (64 - rest)  # worker-10 has a digit more
    job = parse_job(resource, PYTORCH)
    made = [manifest_of(job, "worker", index, framework=PYTORCH)["spec"]["setHostnameAsFQDN"] for index in (0, 10)]
    assert made == [False, False]


def test_other_templates_have_no_such_field() -> None:
    resource = pytorchjob(1, 1)
    resource["metadata"]["name"] = "f" * 50
    assert "setHostnameAsFQDN" not in manifest_of(parse_job(resource, PYTORCH), "master", framework=PYTORCH)["spec"]


@pytest.mark.parametrize(
    ("framework", "resource", "type_"),
    [
        (MXNET, mxjob().v1().servers(1).workers(2).resource(), "server"),
        (MXNET, mxjob().v1alpha1().servers(1).workers(2).resource(), "worker"),
        (TENSORFLOW, tfjob(*TFJOB_V1, worker=2, ps=1), "ps"),
        (PYTORCH, pytorchjob(1, 2), "worker"),
    ],
)
def test_every_template_keeps_its_own_where_each_replica_has_a_service(
    framework: Framework, resource: Resource, type_: str
) -> None:
    made = with_spec(resource, OWN)
    made["metadata"]["annotations"] = {"dljob.operator/services": "per-replica"}
    assert names(framework, made, type_) == KEPT


def test_elastic_workers_have_the_jobs_names_even_with_a_service_each() -> None:
    made = with_spec(pytorchjob(0, 2, elasticPolicy={"minReplicas": 1}), OWN)
    made["metadata"]["annotations"] = {"dljob.operator/services": "per-replica"}
    assert names(PYTORCH, made, "worker") != KEPT
