"""Whose variable a process gets: the operator's for what it is and where the others are, the container's for the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import container_env
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.shared_env_configmap import Shared
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
FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
FORMS: Mapping[str, list[dict[str, Any]]] = {
    "value": [{"name": "X", "value": "own"}],
    "valueFrom": [{"name": "X", "valueFrom": FIELD}],
    "no value": [{"name": "X"}],
    "null": [{"name": "X", "value": None}],
    "empty": [{"name": "X", "value": ""}],
    "a reference": [{"name": "X", "value": "$(OTHER)-0"}],
    "twice": [{"name": "X", "value": "1"}, {"name": "Y", "value": "$(X)"}, {"name": "X", "valueFrom": FIELD}],
}
JOBS: Mapping[str, tuple[Framework, Resource, str, str]] = {
    "MXJob": (MXNET, mxjob().v1().workers(1).resource(), "worker", "DMLC_ROLE"),
    "MXJob list": (MXNET, mxjob().v1alpha1().workers(1).resource(), "worker", "DMLC_PS_ROOT_URI"),
    "MXJob fioravanzo": (MXNET, mxjob().fioravanzo().workers(1).resource(), "worker", "DMLC_NUM_WORKER"),
    "MXJob mpba": (MXNET, mxjob().mpba().workers(1).resource(), "worker", "DMLC_ROLE"),
    "TFJob": (TENSORFLOW, tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2), "worker", "TF_CONFIG"),
    "TFJob list": (TENSORFLOW, tfjob(master=1, worker=2), "worker", "TF_CONFIG"),
    "PyTorchJob": (PYTORCH, pytorchjob(1, 2), "worker", "RANK"),
    "elastic PyTorchJob": (PYTORCH, pytorchjob(0, 2, elasticPolicy={"maxReplicas": 3}), "worker", "PET_RDZV_ENDPOINT"),
    "JAXJob": (JAX, jaxjob(2), "worker", "PROCESS_ID"),
    "PaddleJob": (PADDLE, paddlejob(0, 2), "worker", "PADDLE_MASTER"),
    "PaddleJob valueFrom": (PADDLE, paddlejob(0, 2), "worker", "POD_IP_DUMMY"),
    "XGBoostJob": (XGBOOST, xgboostjob(1, 2), "worker", "WORLD_SIZE"),
    "MPIJob": (MPI, mpijob(), "launcher", "OMPI_MCA_orte_default_hostfile"),
    "MPIJob v1": (MPI, mpijob_v1(), "launcher", "OMPI_MCA_plm_rsh_agent"),
    "Caffe2Job": (CAFFE2, caffe2job(2), "worker", "SHARD_ID"),
}


def with_env(resource: Resource, env: list[dict[str, Any]], **fields: Any) -> Resource:
    """``resource`` with these variables in the first container of all templates, and with those fields."""
    spec = resource["spec"]
    holders = [spec] if isinstance(spec, list) else [v for k, v in spec.items() if k.lower().endswith("replicaspecs")]
    for holder in holders:
        entries = holder if isinstance(holder, list) else [holder] if "template" in holder else holder.values()
        for entry in entries:
            entry["template"]["spec"]["containers"][0] |= {"env": [dict(one) for one in env], **fields}
    return resource


def first_env(framework: Framework, resource: Resource, type_: str, index: int = 0) -> list[dict[str, Any]]:
    pod = manifest_of(parse_job(resource, framework), type_, index, framework=framework)
    found: list[dict[str, Any]] = pod["spec"]["containers"][0].get("env") or []
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", JOBS)
def test_the_operators_is_the_only_one_that_says_who_a_process_is(kind: str, form: str) -> None:
    framework, resource, type_, name = JOBS[kind]
    before = first_env(framework, with_env(resource, []), type_)
    own = [{**one, "name": name if one["name"] == "X" else one["name"]} for one in FORMS[form]]
    rest = [{"name": "LAST", "value": f"$({name})"}]
    after = first_env(framework, with_env(resource, [*own, *rest]), type_)
    assert [one for one in before if one["name"] == name], "the operator sets it"
    kept = [one for one in own if one["name"] != name]
    assert after == [*before, *kept, *rest], "the operator's first, so that the container's may refer to them"


TUNING: Mapping[str, tuple[Framework, Resource, str, str]] = {
    "PyTorchJob": (PYTORCH, pytorchjob(1, 2), "worker", "PYTHONUNBUFFERED"),
    "torchrun": (PYTORCH, pytorchjob(1, 2), "worker", "PET_NPROC_PER_NODE"),
    "JAXJob": (JAX, jaxjob(2), "worker", "PYTHONUNBUFFERED"),
    "PaddleJob": (PADDLE, paddlejob(0, 2), "worker", "PYTHONUNBUFFERED"),
    "XGBoostJob": (XGBOOST, xgboostjob(1, 2), "worker", "PYTHONUNBUFFERED"),
    "MPIJob": (MPI, mpijob(), "launcher", "OMPI_MCA_plm_rsh_args"),
    "MPIJob v1": (MPI, mpijob_v1(), "launcher", "NVIDIA_VISIBLE_DEVICES"),
    "a Redis that the workers do not meet at": (
        CAFFE2,
        caffe2job(2, backendSpecs={"backendType": "nfs", "nfsPath": "/data"}),
        "worker",
        "REDIS_HOST",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", TUNING)
def test_the_containers_own_tunes(kind: str, form: str) -> None:
    framework, resource, type_, name = TUNING[kind]
    before = first_env(framework, with_env(resource, []), type_)
    own = [{**one, "name": name if one["name"] == "X" else one["name"]} for one in FORMS[form]]
    others = [one for one in before if one["name"] != name]
    assert len(others) == len(before) - 1, "the operator sets it"
    assert first_env(framework, with_env(resource, own), type_) == [*others, *own]


def test_variables_from_a_config_map_do_not_change_the_operators() -> None:
    """Kubernetes takes a variable of `env` before one of `envFrom`, so also one that only tunes."""
    source = [{"configMapRef": {"name": "settings"}}]
    plain = first_env(PYTORCH, with_env(pytorchjob(1, 2), []), "worker")
    pod = manifest_of(parse_job(with_env(pytorchjob(1, 2), [], envFrom=source), PYTORCH), "worker", framework=PYTORCH)
    (container,) = pod["spec"]["containers"]
    assert (container["env"], container["envFrom"]) == (plain, source)


OWN_RANK = [{"name": "RANK", "value": "0"}, {"name": "TF_CONFIG", "value": "{}"}]


def with_others(resource: Resource, field: str, type_: str) -> Resource:
    spec = resource["spec"][field][type_]["template"]["spec"]
    spec["containers"].append({"name": "sidecar", "image": "log:1", "env": OWN_RANK})
    spec["initContainers"] = [{"name": "fetch", "image": "fetch:1", "env": OWN_RANK}]
    return resource


def test_a_sidecar_has_the_same_identity() -> None:
    job = parse_job(with_others(pytorchjob(1, 2), "pytorchReplicaSpecs", "Worker"), PYTORCH)
    spec = manifest_of(job, "worker", 1, framework=PYTORCH)["spec"]
    env = {container["name"]: container["env"] for container in spec["containers"]}
    assert [one for one in env["sidecar"] if one["name"] == "RANK"] == [{"name": "RANK", "value": "2"}]
    assert env["sidecar"] == [*env["pytorch"], OWN_RANK[1]]


def test_a_sidecar_without_the_environment_keeps_its_own() -> None:
    job = parse_job(
        with_others(tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2), "tfReplicaSpecs", "Worker"), TENSORFLOW
    )
    spec = manifest_of(job, "worker", 1, framework=TENSORFLOW)["spec"]
    assert spec["containers"][1]["env"] == OWN_RANK


@pytest.mark.parametrize(
    ("framework", "resource", "field"),
    [
        (PYTORCH, pytorchjob(1, 2), "pytorchReplicaSpecs"),
        (TENSORFLOW, tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=2), "tfReplicaSpecs"),
    ],
    ids=["all containers", "the framework's container"],
)
def test_init_containers_keep_their_own(framework: Framework, resource: Resource, field: str) -> None:
    job = parse_job(with_others(resource, field, "Worker"), framework)
    assert manifest_of(job, "worker", framework=framework)["spec"]["initContainers"][0]["env"] == OWN_RANK


# --- with the common part in a ConfigMap


SHARED = Shared("tfjob-76no-abc", {"TF_CONFIG": "common ", "TUNED": "common "}, "digest")
VALUES = {"TF_CONFIG": "common 7", "TUNED": "common 8"}
OURS = [
    {"name": f"DLJOB_SHARED_{name}", "valueFrom": {"configMapKeyRef": {"name": "tfjob-76no-abc", "key": name}}}
    if is_prefix
    else {"name": name, "value": f"$(DLJOB_SHARED_{name}){number}"}
    for name, number in (("TF_CONFIG", 7), ("TUNED", 8))
    for is_prefix in (True, False)
]


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ([], OURS),
        ([{"name": "TF_CONFIG", "value": "x"}], OURS),
        ([{"name": "TUNED", "value": "x"}], [*OURS[:2], {"name": "TUNED", "value": "x"}]),
        ([{"name": "DLJOB_SHARED_TF_CONFIG", "value": "x"}, {"name": "DLJOB_SHARED_TUNED"}], OURS),
    ],
    ids=["none", "identity", "tuning", "the names of the common parts"],
)
def test_of_many_replicas(own: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert container_env.merge(own, VALUES, {"TUNED"}, SHARED) == expected


# --- what is ignored


@pytest.mark.parametrize(
    ("entry", "value", "expected"),
    [
        ({"value": "own"}, "1", True),
        ({"value": "1"}, "1", False),
        ({"value": "$(ONE)"}, "1", True),
        ({"value": ""}, "1", True),
        ({}, "1", True),
        ({"value": None}, "1", True),
        ({"valueFrom": FIELD}, "1", True),
        ({"value": "", "valueFrom": FIELD}, FIELD, False),
        ({"value": "x"}, FIELD, True),
        ({"value": "own"}, "", False),
    ],
)
def test_what_is_overridden(entry: dict[str, Any], value: object, expected: bool) -> None:
    own = [{"name": "A", **entry}]
    assert ignored(own, {"A": value}) == ["A"] * expected
    assert ignored(own, {"A": value}, {"A"}) == []
    assert ignored(own, {"B": value}) == []


def ignored(own: list[dict[str, Any]], environment: Mapping[str, Any], tuning: Collection[str] = ()) -> list[str]:
    return list(container_env.replaced(own, container_env.merge(own, environment, tuning)))


def test_of_duplicates_the_last_one_counts() -> None:
    own = [{"name": "A", "value": "own"}, {"name": "A", "value": "1"}]
    assert ignored(own, {"A": "1"}) == []
    assert ignored(own[::-1], {"A": "1"}) == ["A"]
