"""The security contexts of what the operator adds to a job."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import security_context
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.cluster_spec import build_cluster_spec
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects import owned_objects
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.spec_hash import spec_hash
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support import kinds, pod_security
from support.builders import (
    CAFFE2,
    MPI,
    MXNET,
    TENSORFLOW,
    Resource,
    caffe2job,
    grouped,
    manifest_of,
    mpijob,
    mpijob_v1,
    mxjob,
    tfjob,
)

PROFILE = {"type": "RuntimeDefault"}
USER = {"runAsUser": 1000, "runAsGroup": 1000}
ALL = {"drop": ["ALL"]}


def with_tensorboard(resource: Resource) -> Resource:
    resource["spec"]["tensorboard"] = {"logDir": "/logs"}
    return resource


def templates(resource: Any) -> Iterator[Resource]:
    """All pod templates of a job, of whatever layout."""
    if isinstance(resource, dict):
        if "containers" in (resource.get("spec") or {}):
            yield resource
        else:
            for value in resource.values():
                yield from templates(value)
    elif isinstance(resource, list):
        for value in resource:
            yield from templates(value)


def with_contexts(resource: Resource, pod: Any, container: Any) -> Resource:
    made = copy.deepcopy(resource)
    for template in templates(made["spec"]):
        template["spec"]["securityContext"] = copy.deepcopy(pod)
        for one in template["spec"]["containers"]:
            one["securityContext"] = copy.deepcopy(container)
    return made


def pods(resource: Resource, framework: Framework) -> dict[str, Resource]:
    """The specs of all pods that a job leads to, by name."""
    job = parse_job(resource, framework)
    manifests = [
        manifest_of(job, group.type.lower(), index, framework=framework)
        for group in job.groups
        for index in range(group.replicas)
    ]
    made = {one["metadata"]["name"]: one["spec"] for one in manifests}
    for one in owned_objects.build(job, framework, build_cluster_spec(job, framework)):
        if one["kind"] == "Deployment":
            made[one["metadata"]["name"]] = one["spec"]["template"]["spec"]
    return made


def launcher(resource: Resource) -> Any:
    return resource["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]


JOBS = [
    pytest.param(MXNET, mxjob().v1().servers(1).workers(1).resource(), id="MXJob"),
    pytest.param(MXNET, mxjob().v1alpha1().servers(1).workers(1).resource(), id="MXJob v1alpha1"),
    pytest.param(TENSORFLOW, tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, ps=1, worker=1), id="TFJob"),
    pytest.param(
        TENSORFLOW, with_tensorboard(tfjob("kubeflow.org/v1", "tfReplicaSpecs", worker=1)), id="TFJob, TensorBoard"
    ),
    pytest.param(TENSORFLOW, with_tensorboard(tfjob(master=1, worker=1, ps=2)), id="TfJob, TensorBoard, default PS"),
    *(pytest.param(*one, id=kind) for kind, one in kinds.plain_jobs(1).items()),
    pytest.param(MPI, mpijob(), id="MPIJob v2beta1"),
    pytest.param(MPI, mpijob_v1(), id="MPIJob v1"),
    pytest.param(CAFFE2, caffe2job(), id="Caffe2Job"),
]
"""A job of each kind, with everything that the operator adds to one."""
FORMS = [
    pytest.param(pod_security.POD, pod_security.CONTAINER, id="as documented"),
    pytest.param({**pod_security.POD, **USER}, pod_security.CONTAINER, id="with a user"),
    pytest.param({}, {**pod_security.POD, **pod_security.CONTAINER}, id="all in the container"),
    pytest.param(None, {**pod_security.POD, **USER, **pod_security.CONTAINER}, id="all in the container, with a user"),
    pytest.param({"seccompProfile": PROFILE, "runAsNonRoot": False}, {"runAsNonRoot": True, **pod_security.CONTAINER},
                 id="the container's precedes the pod's"),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "container"), FORMS)
@pytest.mark.parametrize(("framework", "resource"), JOBS)
def test_what_is_added_meets_the_level_that_the_templates_meet(
    framework: Framework, resource: Resource, pod: Any, container: Any
) -> None:
    found = pods(with_contexts(resource, pod, container), framework)
    assert {name: list(pod_security.violations(spec)) for name, spec in found.items()} == {name: [] for name in found}


@pytest.mark.parametrize(("framework", "resource"), JOBS)
def test_a_job_without_contexts_gets_none_that_could_break_it(framework: Framework, resource: Resource) -> None:
    """Its images may run as root, and its TensorBoard read files of other users. The program that brings kubectl is the
    operator's own."""
    for name, spec in pods(resource, framework).items():
        assert "securityContext" not in spec, name
        assert all("securityContext" not in one for one in spec["containers"]), name
        for one in spec.get("initContainers") or ():
            assert one["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({}, {}),
        ({"runAsUser": 0}, {"runAsUser": 0}),
        ({"runAsUser": 7, "runAsGroup": 8, "runAsNonRoot": True}, {"runAsUser": 7, "runAsGroup": 8, "runAsNonRoot": True}),
        ({"seLinuxOptions": {"level": "s0:c1"}}, {"seLinuxOptions": {"level": "s0:c1"}}),
        ({"seccompProfile": PROFILE}, {"seccompProfile": PROFILE}),
        ({"seccompProfile": {"type": "Unconfined"}}, {}),
        ({"seccompProfile": "x"}, {"seccompProfile": "x"}),
        ({"allowPrivilegeEscalation": False}, {"allowPrivilegeEscalation": False}),
        ({"allowPrivilegeEscalation": True, "privileged": True, "procMount": "Unmasked"}, {}),
        ({"capabilities": {"add": ["SYS_ADMIN"], "drop": ["NET_RAW"]}}, {"capabilities": {"drop": ["NET_RAW"]}}),
        ({"capabilities": {"add": ["SYS_ADMIN"]}}, {}),
        ({"readOnlyRootFilesystem": True, "windowsOptions": {}}, {}),
    ],
)  # fmt: skip
def test_what_a_container_takes_of_the_templates(given: Any, made: Any) -> None:
    contexts = {"pod": {}, "container": given, "image": "i"}
    assert security_context.for_container(contexts, "i", {}) == made
    hardened = security_context.for_container(contexts, "i", {}, security_context.HARDENED)
    assert hardened == {**made, "allowPrivilegeEscalation": False, "capabilities": ALL}


def test_what_a_pod_takes_of_the_templates() -> None:
    taken = {
        "runAsUser": 7,
        "fsGroup": 9,
        "fsGroupChangePolicy": "OnRootMismatch",
        "supplementalGroups": [10],
        "seccompProfile": PROFILE,
        "seLinuxOptions": {"level": "s0:c1"},
    }
    given = {**taken, "sysctls": [{"name": "x", "value": "y"}], "runAsGroup": None}
    assert security_context.for_pod({"pod": given}) == taken


@pytest.mark.parametrize(
    ("pod", "container", "image", "user"),
    [
        ({"runAsNonRoot": True}, {}, "other", 65534),
        ({}, {"runAsNonRoot": True}, "other", 65534),
        ({"runAsNonRoot": True, "runAsUser": 5}, {}, "other", None),
        ({"runAsNonRoot": True}, {"runAsUser": 5}, "other", 5),
        ({"runAsNonRoot": True}, {"runAsNonRoot": False}, "other", None),
        ({"runAsNonRoot": True}, {}, "own", None),
        ({}, {}, "other", None),
    ],
)
def test_an_image_that_may_run_as_root_gets_a_user(pod: Any, container: Any, image: str, user: int | None) -> None:
    contexts = {"pod": pod, "container": container, "image": "own"}
    assert security_context.for_container(contexts, image, {}).get("runAsUser") == user


def test_the_administrator_sets_that_user() -> None:
    contexts = {"pod": {"runAsNonRoot": True}, "container": {}, "image": "own"}
    assert security_context.for_container(contexts, "other", {"nonRootUserId": 2000})["runAsUser"] == 2000
    assert "runAsUser" not in security_context.for_container(contexts, "other", {"nonRootUserId": None}), "OpenShift"


@pytest.mark.parametrize("template", [{}, {"spec": None}, {"spec": "x"}, {"spec": {"containers": "x"}},
                                      {"spec": {"containers": ["x"]}}, {"spec": {"securityContext": "x"}},
                                      {"spec": {"containers": [{"name": "a", "securityContext": ["x"]}]}}])  # fmt: skip
def test_a_malformed_template_has_none(template: Any) -> None:
    assert security_context.of_template(template, ["a"], "a") == {}


def test_the_container_of_the_framework_counts_else_the_first() -> None:
    containers = [{"name": name, "image": name, "securityContext": {"runAsUser": n}} for n, name in enumerate("ab", 1)]
    template = {"spec": {"containers": containers}}
    assert security_context.of_template(template, ["a", "b"], "b") == {
        "pod": {},
        "container": {"runAsUser": 2},
        "image": "b",
    }
    assert security_context.of_template(template, ["a", "b"], "c") == {
        "pod": {},
        "container": {"runAsUser": 1},
        "image": "a",
    }


def test_the_container_that_brings_kubectl_runs_as_the_launcher() -> None:
    resource = mpijob_v1()
    launcher(resource)["containers"][0]["securityContext"] = {**USER, "privileged": True}
    (delivery,) = pods(resource, MPI)["pi-launcher"]["initContainers"]
    assert delivery["securityContext"] == {**USER, "allowPrivilegeEscalation": False, "capabilities": ALL}
    assert "securityContext" not in pods(resource, MPI)["pi-worker-0"]["containers"][0]


def test_a_launcher_of_a_group_counts_with_its_own_template() -> None:
    resource = grouped(mpijob_v1(), "Launcher", small=(1, {"name": "mpi", "securityContext": {"runAsUser": 5}}))
    (delivery,) = pods(resource, MPI)["pi-launcher"]["initContainers"]
    assert delivery["securityContext"]["runAsUser"] == 5


def test_the_template_may_have_its_own_context_for_the_added_container() -> None:
    resource = mpijob_v1()
    own = {"privileged": True}
    launcher(resource)["initContainers"] = [{"name": "kubectl-delivery", "securityContext": own}]
    (delivery,) = pods(resource, MPI)["pi-launcher"]["initContainers"]
    assert delivery["securityContext"] == own, "together with allowPrivilegeEscalation: false it is invalid"
    assert delivery["image"] == "kubeflow/kubectl-delivery:latest"


def ps(template: Any = None, master: Any = None, **entry: Any) -> Any:
    resource = with_contexts(tfjob(master=1, ps=1), *(master or ({}, {})))
    resource["spec"]["replicaSpecs"][1].update({**({} if template is None else {"template": template}), **entry})
    return next(spec for name, spec in pods(resource, TENSORFLOW).items() if name.startswith("ps-"))


STRICT = ({"runAsNonRoot": True, "runAsUser": 1000}, pod_security.CONTAINER)


def test_the_default_server_without_a_template_runs_as_the_master() -> None:
    spec = ps(master=STRICT)
    assert (spec["securityContext"], spec["containers"][0]["securityContext"]) == STRICT


def test_the_default_server_in_a_pod_with_a_context_of_its_own() -> None:
    spec = ps({"spec": {"securityContext": {"runAsUser": 7}}}, STRICT)
    assert spec["securityContext"] == {"runAsUser": 7}
    assert spec["containers"][0]["securityContext"] == pod_security.CONTAINER


def test_the_default_server_beside_a_container_of_its_template() -> None:
    template = {"spec": {"containers": [{"name": "x", "image": "x", "securityContext": {"runAsUser": 7}}]}}
    spec = ps(template, STRICT)
    assert "securityContext" not in spec
    assert spec["containers"][1]["securityContext"] == {"runAsUser": 7}


@pytest.mark.parametrize("own", [{}, {"securityContext": {"privileged": True}}])
def test_the_users_own_server_keeps_its_context(own: Any) -> None:
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "train:1", **own}],
                         "securityContext": {"runAsNonRoot": True}}}  # fmt: skip
    spec = ps(template, STRICT, IsDefaultPS=True)
    assert spec["containers"][0].get("securityContext") == own.get("securityContext")
    assert spec["securityContext"] == {"runAsNonRoot": True}


def test_what_is_added_is_no_part_of_the_spec_hash() -> None:
    """A new release must not replace the pods of running jobs."""
    job = parse_job(with_contexts(tfjob(master=1, ps=1), *STRICT), TENSORFLOW)
    assert spec_hash(job, job.groups[1]) == spec_hash(parse_job(tfjob(master=1, ps=1), TENSORFLOW), job.groups[1]), (
        "of the server, whose own template says nothing"
    )
