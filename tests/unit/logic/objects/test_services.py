"""The headless Service for all replicas, that with the success target's name, and, where asked for, one a replica."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import services
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from support.builders import (
    CAFFE2,
    JAX,
    MPI,
    MXNET,
    PADDLE,
    PYTORCH,
    TENSORFLOW,
    UID,
    XGBOOST,
    MXJob,
    caffe2job,
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

V1 = "training.kubeflow.org/"


def build(job: DLJob, framework: Framework = MXNET) -> list[Any]:
    cluster = build_cluster_spec(job, framework)
    return [services.build(job, framework, cluster, one) for one in services.wanted(job)]


def per_replica(job: DLJob) -> DLJob:
    return dataclasses.replace(job, services="per-replica")


def labels_of(service: Any) -> dict[str, str]:
    own = ("app.kubernetes.io/", "dljob.operator/")
    return {name: text for name, text in service["metadata"]["labels"].items() if not name.startswith(own)}


@pytest.mark.parametrize("flavor", ["v1alpha1", "fioravanzo", "mpba"])
def test_one_service_however_many_replicas(flavor: str) -> None:
    job = mxjob().flavor(flavor).workers(500).job()
    (service,) = build(job)
    assert service["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"dljob.operator/job-uid": UID},
    }


def test_it_is_the_subdomain_of_the_pods() -> None:
    job = mxjob().v1alpha1().job()
    assert build(job)[0]["metadata"]["name"] == manifest_of(job, "scheduler")["spec"]["subdomain"]


def test_v1_adds_the_short_name_of_the_chief() -> None:
    job = mxjob("digits").v1().workers(2).job()
    _, chief = build(job)
    assert chief["metadata"]["name"] == "digits-scheduler-0"
    labels = manifest_of(job, "scheduler")["metadata"]["labels"]
    assert chief["spec"]["selector"].items() <= labels.items()
    assert not chief["spec"]["selector"].items() <= manifest_of(job, "worker")["metadata"]["labels"].items()


def test_v1_chief_of_the_termination_policy() -> None:
    _, chief = build(mxjob("digits").v1().workers(2).chief("Worker", 1).job())
    assert chief["metadata"]["name"] == "digits-worker-1"


@pytest.mark.parametrize("flavor", ["v1", "v1alpha1"])
def test_services_are_owned(flavor: str) -> None:
    for service in build(mxjob().flavor(flavor).job()):
        (owner,) = service["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (UID, True)
        assert service["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "dljob-operator"


# --- labels: of the job on both, of the replica on that with its name; never v1's job-role, which its Services lack

KUBEFLOW = (
    ("TFJob", parse_job(tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2, ps=1), TENSORFLOW), TENSORFLOW, "worker"),
    ("PyTorchJob", parse_job(pytorchjob(1, 2), PYTORCH), PYTORCH, "master"),
    ("MXJob", mxjob("example-job").v1().workers(2).job(), MXNET, "scheduler"),
    ("XGBoostJob", parse_job(xgboostjob(1, 2), XGBOOST), XGBOOST, "master"),
    ("PaddleJob", parse_job(paddlejob(0, 2), PADDLE), PADDLE, "worker"),
    ("JAXJob", parse_job(jaxjob(2), JAX), JAX, "worker"),
)
PORTS = {
    "TFJob": ("tfjob-port", 2222),
    "PyTorchJob": ("pytorchjob-port", 23456),
    "MXJob": ("mxjob-port", 9091),
    "XGBoostJob": ("xgboostjob-port", 9999),
    "PaddleJob": ("master", 36543),
    "JAXJob": ("jaxjob-port", 6666),
}
"""Of training-operator 1.9, and 1.8 for MXJob."""


@pytest.mark.parametrize(("kind", "job", "framework", "target"), KUBEFLOW, ids=[row[0] for row in KUBEFLOW])
def test_labels_and_ports_of_v1(kind: str, job: DLJob, framework: Framework, target: str) -> None:
    headless, short = build(job, framework)
    of_job = {f"{V1}operator-name": f"{kind.lower()}-controller", f"{V1}job-name": "example-job"}
    assert labels_of(headless) == of_job
    assert labels_of(short) == {**of_job, f"{V1}replica-type": target, f"{V1}replica-index": "0"}
    name, number = PORTS[kind]
    assert short["spec"]["ports"] == [{"name": name, "port": number}]
    assert "ports" not in headless["spec"]


OTHERS = (
    ("tensorflow.org", parse_job(tfjob(master=1, ps=1), TENSORFLOW), TENSORFLOW,
     {"tensorflow.org": "", "runtime_id": "76no", "tf_job_name": "example-job"}),
    ("kubeflow.org/v1alpha1", mxjob().v1alpha1().option(RuntimeId="76no").job(), MXNET,
     {"kubeflow.org": "", "runtime_id": "76no", "mx_job_name": "digits"}),
    ("fioravanzo.org", mxjob().fioravanzo().option(RuntimeId="76no").job(), MXNET,
     {"fioravanzo.org": "", "runtime_id": "76no", "mx_job_name": "digits"}),
    ("mpba.fbk.eu", mxjob().mpba().job(), MXNET, {"job_name": "digits"}),
    ("Caffe2Job", parse_job(caffe2job(RuntimeId="1"), CAFFE2), CAFFE2,
     {"group_name": "kubeflow.org", "caffe2_job_key": "default-example-job", "runtime_id": ""}),
    ("MPIJob v1", parse_job(mpijob_v1(), MPI), MPI,
     {f"{V1}operator-name": "mpijob-controller", f"{V1}job-name": "pi", "app": "pi"}),
    ("MPIJob v2beta1", parse_job(mpijob(), MPI), MPI,
     {f"{V1}operator-name": "mpi-operator", f"{V1}job-name": "pi", "app": "pi"}),
)  # fmt: skip


@pytest.mark.parametrize(("name", "job", "framework", "expected"), OTHERS, ids=[row[0] for row in OTHERS])
def test_labels_of_the_job_in_the_other_flavors(
    name: str, job: DLJob, framework: Framework, expected: dict[str, str]
) -> None:
    expected = {**expected, "runtime_id": job.runtime_id} if "runtime_id" in expected else expected
    assert labels_of(build(job, framework)[0]) == expected


def test_labels_of_a_dljob() -> None:
    framework = any_framework.adapt(PYTORCH)
    resource = {
        "apiVersion": "dljob.operator/v1",
        "kind": "DLJob",
        "metadata": {"name": "any", "namespace": "default", "uid": UID, "generation": 1},
        "spec": {"framework": "pytorch", "replicas": {"Master": {"image": "a"}, "Worker": {"count": 2, "image": "a"}}},
    }
    headless, short = build(any_framework.parse_any(resource, framework), framework)
    assert headless["metadata"]["labels"]["dljob.operator/framework"] == "pytorch"
    assert labels_of(short)[f"{V1}replica-type"] == "master"
    assert short["spec"]["ports"] == [{"name": "pytorchjob-port", "port": 23456}]


# --- ports


def ports(template: MXJob) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = build(template.v1().job())[1]["spec"]["ports"]
    return found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], [("mxjob-port", 9091)]),
        ([{"name": "http", "containerPort": 80}], [("http", 80), ("mxjob-port", 9091)]),
        ([{"name": "mxjob-port", "containerPort": 7000}], [("mxjob-port", 7000)]),
        ([{"containerPort": 6006}], [("port-6006", 6006), ("mxjob-port", 9091)]),
        # a Service has each number once; that of the framework keeps its name
        ([{"name": "grpc", "containerPort": 9091}], [("mxjob-port", 9091)]),
        ([{"name": "a", "containerPort": 80}, {"name": "b", "containerPort": 80}], [("a", 80), ("mxjob-port", 9091)]),
        ([{"name": "a", "containerPort": 80, "hostPort": 8080}], [("a", 80), ("mxjob-port", 9091)]),
    ],
)
def test_ports_are_those_of_the_frameworks_container(given: list[Any], expected: list[tuple[str, int]]) -> None:
    found = ports(mxjob().container("Scheduler", ports=given))
    assert [(one["name"], one["port"]) for one in found] == expected
    assert all(set(one) == {"name", "port"} for one in found)


def test_a_port_of_another_protocol_keeps_it() -> None:
    given = [{"name": "dns", "containerPort": 53, "protocol": "UDP"}, {"name": "tcp", "containerPort": 53}]
    assert ports(mxjob().container("Scheduler", ports=given))[:2] == [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "tcp", "port": 53},
    ]


def test_no_port_of_another_container_and_the_same_with_host_network() -> None:
    sidecar = {"name": "metrics", "image": "a", "ports": [{"name": "prom", "containerPort": 9100}]}
    resource = mxjob().v1().pod("Scheduler", hostNetwork=True).resource()
    resource["spec"]["mxReplicaSpecs"]["Scheduler"]["template"]["spec"]["containers"].insert(0, sidecar)
    assert build(parse_job(resource, MXNET))[1]["spec"]["ports"] == [{"name": "mxjob-port", "port": 9091}]


def test_the_replicas_of_a_group_have_the_ports_of_its_template() -> None:
    resource = grouped(pytorchjob(1, 2), "Worker", big=(1, {"ports": [{"name": "big", "containerPort": 1}]}))
    made = build(per_replica(parse_job(resource, PYTORCH)), PYTORCH)
    found = {one["metadata"]["name"]: [p["name"] for p in one["spec"].get("ports", ())] for one in made}
    assert found["example-job-worker-0"] == ["big", "pytorchjob-port"]
    assert found["example-job-worker-1"] == ["pytorchjob-port"]


# --- one Service a replica


@pytest.mark.parametrize(("kind", "job", "framework", "target"), KUBEFLOW, ids=[row[0] for row in KUBEFLOW])
def test_one_service_a_replica_as_in_v1(kind: str, job: DLJob, framework: Framework, target: str) -> None:
    headless, *others = build(per_replica(job), framework)
    assert headless["metadata"]["name"] == build(job, framework)[0]["metadata"]["name"]
    replicas = [(group.type.lower(), index) for group, index in job.tasks()]
    assert [one["metadata"]["name"] for one in others] == [f"{job.name}-{type_}-{index}" for type_, index in replicas]
    name, number = PORTS[kind]
    for (type_, index), service in zip(replicas, others, strict=True):
        labels = labels_of(service)
        assert labels == {
            f"{V1}operator-name": f"{kind.lower()}-controller",
            f"{V1}job-name": job.name,
            f"{V1}replica-type": type_,
            f"{V1}replica-index": str(index),
        }
        pod = manifest_of(job, type_, index, framework=framework)["metadata"]["labels"]
        assert labels.items() <= pod.items()
        assert service["spec"]["selector"].items() <= pod.items()
        assert service["spec"] == {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {
                "dljob.operator/job-uid": UID,
                "dljob.operator/replica-type": type_,
                "dljob.operator/replica-index": str(index),
            },
            "ports": [{"name": name, "port": number}],
        }


LISTS = (
    (mxjob().fioravanzo().entry("Scheduler", mxPort=9000), MXNET, ("mx-port", 9000)),
    (mxjob().v1alpha1(), MXNET, ("ps-root-port", 9091)),
    (mxjob().mpba(), MXNET, ("port", 9000)),
)


@pytest.mark.parametrize(("given", "framework", "port"), LISTS)
def test_the_list_layouts_have_those_of_their_operators(
    given: MXJob, framework: Framework, port: tuple[str, int]
) -> None:
    job = per_replica(given.workers(1).job())
    _, scheduler, worker = build(job, framework)
    assert scheduler["metadata"]["name"] == f"scheduler-{job.runtime_id}-0"
    assert worker["metadata"]["name"] == f"worker-{job.runtime_id}-0"
    assert [(one["name"], one["port"]) for one in scheduler["spec"]["ports"]] == [port]
    assert labels_of(worker).items() <= manifest_of(job, "worker")["metadata"]["labels"].items()


def test_a_caffe2job_has_them_too() -> None:
    _, first, _ = build(per_replica(parse_job(caffe2job(), CAFFE2)), CAFFE2)
    assert first["metadata"]["name"] == "example-job-worker-0"
    assert labels_of(first)["caffe2_replica_index"] == "0"
    assert first["spec"]["ports"] == [{"name": "port", "port": 2222}]
