"""Unknown keys of pod templates are refused at apply, in every layout; what Kubernetes knows is kept as it is."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from support import kinds
from support.builders import (
    caffe2job,
    grouped,
    mpijob,
    mpijob_v1,
    mxjob,
    pytorchjob,
    tfjob,
)

Job = dict[str, Any]
IMAGE = {"image": "example/train:1"}


def fresh(job: Any) -> Job:
    made: Job = copy.deepcopy(job)
    made["metadata"] = {"name": "job"}
    return made


def dljob(**entry: Any) -> Job:
    spec = {"framework": "pytorch", "replicas": {"Master": entry}}
    return {"apiVersion": "dljob.operator/v1", "kind": "DLJob", "metadata": {"name": "job"}, "spec": spec}


def _jobs() -> dict[str, Job]:
    pod = {"spec": {"containers": [{"name": "pytorch", **IMAGE}]}}
    found: dict[str, Job] = {
        "MXJob v1": mxjob().v1().resource(),
        "MXJob v1alpha1": mxjob().v1alpha1().resource(),
        "MXJob fioravanzo": mxjob().fioravanzo().resource(),
        "MXJob mpba": mxjob().mpba().resource(),
        "TFJob v1": tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=1),
        "TFJob v1alpha1": tfjob("kubeflow.org/v1alpha1", "replicaSpecs", master=1),
        "TFJob replica_specs": tfjob("kubeflow.org/v1alpha1", "replica_specs", master=1),
        "TfJob": tfjob("tensorflow.org/v1alpha1", "replicaSpecs", master=1),
        **{kind: job for kind, (_, job) in kinds.plain_jobs(1).items()},
        "MPIJob v2beta1": mpijob(1),
        "MPIJob v1": mpijob_v1(1),
        "Caffe2Job": caffe2job(1),
        "DLJob": dljob(template=pod),
    }
    return {name: fresh(job) for name, job in found.items()}


JOBS = _jobs()


def templates(value: Any) -> list[Job]:
    """The pod templates of a job."""
    if isinstance(value, list):
        return [one for item in value for one in templates(item)]
    if not isinstance(value, dict):
        return []
    own = [value["template"]] if "template" in value else []
    return own + [one for name, item in value.items() if name != "template" for one in templates(item)]


FAULTS: list[tuple[str, Callable[[Job], object], str]] = [
    ("metadata", lambda t: t.update(metadata={"anotations": {"a": "b"}}), "template.metadata.anotations"),
    ("spec", lambda t: t["spec"].update(nodeSelectors={"a": "b"}), "template.spec.nodeSelectors"),
    ("container", lambda t: t["spec"]["containers"][0].update(resource={}), "containers[0].resource"),
    (
        "resources",
        lambda t: t["spec"]["containers"][0].update(resources={"limit": {}}),
        "containers[0].resources.limit",
    ),
    (
        "variable",
        lambda t: t["spec"]["containers"][0].update(
            env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "keys": "k"}}}]
        ),
        "secretKeyRef.keys",
    ),
    (
        "volume",
        lambda t: t["spec"].update(volumes=[{"name": "v", "persistentVolumeClaim": {"claim": "c"}}]),
        "persistentVolumeClaim.claim",
    ),
    (
        "affinity",
        lambda t: t["spec"].update(
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpression": []}]}
                }
            }
        ),
        "nodeSelectorTerms[0].matchExpression",
    ),
    (
        "init container",
        lambda t: t["spec"].update(initContainers=[{"name": "i", "images": "x"}]),
        "initContainers[0].images",
    ),
]


@pytest.mark.parametrize(("edit", "path"), [pytest.param(edit, path, id=name) for name, edit, path in FAULTS])
@pytest.mark.parametrize("name", JOBS)
def test_an_unknown_key(
    name: str, edit: Callable[[Job], object], path: str, validation_error: Callable[[Job], str]
) -> None:
    job = copy.deepcopy(JOBS[name])
    edit(templates(job["spec"])[0])
    error = validation_error(job)
    assert "unknown field" in error and path in error


@pytest.mark.parametrize(
    "job", [fresh(grouped(pytorchjob(1, 2), "Worker", big=(1, {}))), fresh(grouped(mpijob(2), "Worker", big=(1, {})))]
)
def test_an_unknown_key_of_a_group(job: Job, validation_error: Callable[[Job], str]) -> None:
    job = copy.deepcopy(job)
    (template,) = [one for one in templates(job["spec"]) if one is _group(job)["template"]]
    template["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {"commands": []}}}
    assert "exec.commands" in validation_error(job)


def _group(job: Job) -> Job:
    (replicas,) = [value for name, value in job["spec"].items() if name.endswith("ReplicaSpecs")]
    group: Job = replicas["Worker"]["groups"][0]
    return group


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [("env", [{"name": "A", "valued": "b"}], "env[0].valued"), ("resources", {"limit": {}}, "resources.limit")],
)
def test_the_short_form_of_a_dljob(field: str, value: Any, path: str, validation_error: Callable[[Job], str]) -> None:
    assert path in validation_error(dljob(**IMAGE, **{field: value}))


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (lambda t: t["spec"]["containers"][0].update(env=[{"name": "A", "value": 4}]), "containers[0].env[0].value"),
        (lambda t: t.update(metadata={"labels": {"a": 1}}), "template.metadata.labels.a"),
    ],
)
def test_a_number_where_kubernetes_wants_a_string(
    edit: Callable[[Job], object], path: str, validation_error: Callable[[Job], str]
) -> None:
    job = copy.deepcopy(JOBS["PyTorchJob"])
    edit(templates(job["spec"])[0])
    error = validation_error(job)
    assert path in error and "must be of type string" in error


RICH: Job = {
    "metadata": {
        "creationTimestamp": None,
        "labels": {"a": "b"},
        "annotations": None,
        "name": "x",
        "finalizers": ["a/b"],
    },
    "spec": {
        "nodeSelector": None,
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "overhead": {"cpu": 0.5, "memory": "1Gi"},
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 5,
        "schedulingGates": [{"name": "a/b"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "ephemeralContainers": [],
        "hostUsers": False,
        "schedulingGroup": {"podGroupName": "g"},
        "volumes": [
            {"name": "a", "emptyDir": {"medium": "Memory", "sizeLimit": 1}},
            {"name": "b", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "i", "image": {"reference": "data:1", "pullPolicy": "IfNotPresent"}},
            {
                "name": "c",
                "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}},
            },
        ],
    },
}
CONTAINER: Job = {
    "env": [
        {"name": "A", "value": None},
        {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "x", "divisor": 1}}},
    ],
    "resources": {
        "limits": {"cpu": 1, "memory": 1500000000, "nvidia.com/gpu": "1"},
        "requests": None,
        "claims": [{"name": "gpu", "request": "first"}],
    },
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    "restartPolicy": "Never",
    "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}],
    "ports": [{"name": "p", "containerPort": 80}],
    "livenessProbe": {"httpGet": {"port": "p"}},
    "readinessProbe": {"tcpSocket": {"port": 80}},
    "securityContext": {"runAsUser": None, "capabilities": {"add": ["IPC_LOCK"]}},
    "command": None,
}


@pytest.mark.parametrize("name", JOBS)
def test_what_kubernetes_knows_is_kept(name: str, submit: Callable[..., Job]) -> None:
    job = copy.deepcopy(JOBS[name])
    template = templates(job["spec"])[0]
    template["metadata"] = copy.deepcopy(RICH["metadata"])
    template["spec"] |= copy.deepcopy(RICH["spec"])
    template["spec"]["containers"][0] |= copy.deepcopy(CONTAINER)
    template["spec"]["initContainers"] = [{"name": "i", "image": "x", **copy.deepcopy(CONTAINER)}]
    kept = submit(job)["spec"]
    assert templates(kept)[0] == template


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("PyTorchJob", {}),
        ("TFJob v1", {}),
        ("MXJob v1", {}),
        ("MPIJob v1", {}),
        ("TfJob", None),
        ("MPIJob v2beta1", {}),
    ],
)
def test_a_run_policy_by_default(name: str, expected: Any, submit: Callable[..., Job]) -> None:
    """training-operator requires the field, so its Python client cannot read a job without it."""
    job = copy.deepcopy(JOBS[name])
    job["spec"].pop("runPolicy", None)
    assert submit(job)["spec"].get("runPolicy") == expected
