"""The kind DLJob: the plan of the framework that the job names, and what is refused with which words."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import any_framework
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan import ignored_settings
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.plan import plan
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from devtools.definitions import definitions
from support import kinds
from support.builders import (
    CAFFE2,
    MPI,
    MXNET,
    NOW,
    PYTORCH,
    TENSORFLOW,
    UID,
    Resource,
    caffe2job,
    echo_framework,
    echo_framework_of_flavor,
    grouped,
    manifest_of,
    mpijob,
    mxjob,
    observed,
    pod_context,
    pytorchjob,
    tfjob,
)

OWN = (*kinds.FRAMEWORKS.values(),)
ALL = {framework.name: any_framework.adapt(framework) for framework in OWN}


def dljob(framework: str, replicas: dict[str, Any], **spec: Any) -> Resource:
    return {
        "apiVersion": "dljob.operator/v1",
        "kind": "DLJob",
        "metadata": {"name": "example-job", "namespace": "default", "uid": UID, "generation": 1},
        "spec": {"framework": framework, "replicas": replicas, **spec},
    }


def short(**fields: Any) -> dict[str, Any]:
    return {"image": "train:1", **fields}


def parsed(resource: Resource) -> Any:
    return any_framework.parse_any(resource, any_framework.choose(resource, ALL))


def errors(resource: Resource) -> list[str]:
    with pytest.raises(InvalidJob) as caught:
        parsed(resource)
    return list(caught.value.problems)


def of_own_kind(framework: Framework) -> Resource:
    """A job of the framework's own kind, of two replicas or more."""
    others = {
        "mxnet": mxjob("example-job").v1().workers(1).resource(),
        "tensorflow": tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1),
        "caffe2": caffe2job(2),
    }
    plain = {one.name: kinds.plain_job(kind) for kind, one in kinds.PLAIN.items()}
    return {**others, **plain}[framework.name]


def as_dljob(resource: Resource, framework: Framework) -> Resource:
    """The same job as a DLJob in the short form."""
    spec = copy.deepcopy(resource["spec"])
    (field,) = (name for name in spec if name.endswith("eplicaSpecs"))
    replicas = spec.pop(field)
    replicas = {"Worker": replicas} if "template" in replicas else replicas
    entries = {t: {"count": r.get("replicas"), "image": "train:1"} for t, r in replicas.items()}
    if framework.name == "caffe2":
        entries["Worker"]["image"] = "c2:1"
    return dljob(framework.name, entries, options=spec)


def comparable(pod: Any) -> dict[str, Any]:
    """A pod without its owner, and with one name of the headless Service, in which the kind is."""
    metadata, spec = copy.deepcopy(pod["metadata"]), copy.deepcopy(pod["spec"])
    del metadata["ownerReferences"]
    metadata["labels"].pop(any_framework.LABEL_FRAMEWORK, None)
    spec = json.loads(json.dumps(spec).replace(spec["subdomain"], "service"))
    return {"metadata": metadata, "spec": spec}


@pytest.mark.parametrize("framework", OWN, ids=lambda f: f.name)
def test_every_manager_that_the_schema_permits_as_ours_is_ours(framework: Framework) -> None:
    """Another would be ignored for ever, without a status: the field is immutable."""
    crd = definitions()["dljobs.dljob.operator"]
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    permitted = set(fields["runPolicy"]["properties"]["managedBy"]["enum"])
    managers = {"dljob.operator/dljob-operator", *ALL[framework.name].flavors[-1].managers}
    assert permitted - {"kueue.x-k8s.io/multikueue"} == managers
    assert set(framework.flavors[-1].managers) <= permitted, "what convert writes is permitted"


@pytest.mark.parametrize("framework", [f for f in OWN if f.name != "mpi"], ids=lambda f: f.name)
def test_it_has_the_plan_of_the_frameworks_own_kind(framework: Framework) -> None:
    own = of_own_kind(framework)
    other = as_dljob(own, framework)
    own_job, job = parse_job(own, framework), parsed(other)
    expected = plan(own_job, framework, observed(own_job, services=False), NOW)
    made = plan(job, ALL[framework.name], observed(job, services=False), NOW)
    assert len(made.pods) == own_job.total > 1
    assert [comparable(pod) for pod in made.pods] == [comparable(pod) for pod in expected.pods]
    assert job.succeeds_by == own_job.succeeds_by
    assert job.success_target == own_job.success_target


def test_a_job_of_mpi_has_the_objects_of_its_own_kind() -> None:
    """Its processes run in the first container, whatever its name: the short form makes that one."""
    own_job = parse_job(mpijob(1, "example-job"), MPI)
    job = parsed(dljob("mpi", {"Launcher": short(command=["mpirun", "train"]), "Worker": short()}))
    expected = plan(own_job, MPI, observed(own_job, services=False), NOW)
    made = plan(job, ALL["mpi"], observed(job, services=False), NOW)

    def names(found: Any) -> list[tuple[str, str]]:
        return [(one["kind"], one["metadata"]["name"]) for one in (*found.auxiliary_objects, *found.pods)]

    assert names(made) == names(expected)
    launcher, worker = (pod["spec"].get("template", pod)["spec"]["containers"][0] for pod in made.pods)
    assert (launcher["name"], worker["name"]) == ("mpi", "mpi")
    assert launcher["command"] == ["mpirun", "train"]
    assert worker["command"] == ["/usr/sbin/sshd", "-De"]


def test_the_short_form_is_the_frameworks_container() -> None:
    container = {
        "command": ["python"],
        "args": ["train.py", "--epochs=3"],
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": 1}},
    }
    job = parsed(dljob("jax", {"Worker": short(count=3, restartPolicy="OnFailure", **container)}))
    (group,) = job.groups
    assert (group.replicas, group.restart_policy, group.path) == (3, "OnFailure", "spec.replicas.Worker")
    assert group.template == {"spec": {"containers": [{"name": "jax", "image": "train:1", **container}]}}


def test_a_template_and_types_in_any_case() -> None:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "train:1"}], "hostNetwork": True}}
    job = parsed(dljob("pytorch", {"MASTER": {"template": template}, "worker": short(count=2)}))
    assert [(g.type, g.replicas) for g in job.groups] == [("Master", 1), ("Worker", 2)]
    assert job.groups[0].template == template


def test_run_policy_and_names() -> None:
    policy = {"backoffLimit": 3, "restartScope": "Job", "suspend": True}
    job = parsed(dljob("jax", {"Worker": short()}, runPolicy=policy, schedulerName="volcano", runtimeId="ab12"))
    assert (job.run_policy.backoff_limit, job.run_policy.restart_scope, job.run_policy.suspend) == (3, "Job", True)
    assert (job.run_policy.scheduler_name, job.runtime_id) == ("volcano", "ab12")
    assert (job.kind, job.api_version, job.name) == ("DLJob", "dljob.operator/v1", "example-job")


def test_elastic_workers() -> None:
    options = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}}
    assert parsed(dljob("pytorch", {"Worker": short(count=2)}, options=options)).elastic_type == "Worker"
    options = {"enableDynamicWorker": True}
    assert parsed(dljob("tensorflow", {"Worker": short(count=2)}, options=options)).elastic_type == "Worker"


@pytest.mark.parametrize(
    ("api_version", "kind", "expected"),
    [
        ("dljob.operator/v1", "DLJob", True),
        ("dljob.operator/v2", "DLJob", True),
        ("dljob.operator/v1", "MXJob", False),
        ("kubeflow.org/v1", "DLJob", False),
        ("v1/dljob.operator", "DLJob", False),
        (None, None, False),
    ],
)
def test_whether_a_job_is_a_dljob(api_version: Any, kind: Any, expected: bool) -> None:
    assert any_framework.is_any({"apiVersion": api_version, "kind": kind}) is expected


def test_it_has_what_the_newest_flavor_declares() -> None:
    (flavor,) = any_framework.adapt(MXNET).flavors
    assert (flavor.default_port, MXNET.flavors[0].default_port) == (9091, 9000)
    assert any_framework.option_names(TENSORFLOW) == any_framework.option_names(ALL["tensorflow"])
    (flavor,) = any_framework.adapt(MPI).flavors
    assert (flavor.version, MPI.flavors[-1].version) == ("", "v2beta1")


@pytest.mark.parametrize("framework", OWN, ids=lambda framework: framework.name)
def test_its_pods_have_the_labels_of_the_flavor_and_the_name_of_the_framework(framework: Framework) -> None:
    (flavor,) = any_framework.adapt(framework).flavors
    assert flavor.labels == {**framework.flavors[-1].labels, "dljob.operator/framework": framework.name}


def test_the_runtime_id_has_one_spelling() -> None:
    resource = as_dljob(of_own_kind(CAFFE2), CAFFE2)
    resource["spec"]["runtimeId"] = "ab12"
    assert any_framework.parse_any(resource, any_framework.adapt(CAFFE2)).runtime_id == "ab12"


def test_the_options_of_a_framework_that_declares_no_field_for_them() -> None:
    elastic = any_framework.adapt(echo_framework_of_flavor(elastic={"field": "elastic", "type": "Follower"}))
    assert any_framework.option_names(elastic) == ["elastic", "terminationPolicy"]
    assert any_framework.option_names(echo_framework(modes={"Single": "local"})) == ["jobMode", "terminationPolicy"]
    assert any_framework.option_names(echo_framework()) == ["terminationPolicy"]


def test_a_framework_without_a_kind_of_its_own() -> None:
    """Of a user: neither CRD nor API group is declared."""
    declared = any_framework.declared_for_any(
        {
            "name": "echo",
            "extends": "kubeflow_v1",
            "container": "echo",
            "replica_types": {"Leader": {"maximum": 1}, "Follower": {}},
            "replicas_fields": ["replicaSpecs"],
        }
    )
    framework = any_framework.adapt(echo_framework_of(declared))
    job = any_framework.parse_any(dljob("echo", {"Leader": short(), "Follower": short(count=2)}), framework)
    assert [g.type for g in job.groups] == ["Leader", "Follower"]
    assert job.flavor.labels["training.kubeflow.org/operator-name"] == "dljob-controller"


def echo_framework_of(declared: Any) -> Framework:
    from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader

    return loader.framework(declared)


def test_a_list_layout_becomes_a_map() -> None:
    framework = any_framework.adapt(
        echo_framework(
            flavors=[{"groups": ["example.com"], "extends": "v1alpha1_list", "type_field": "echoType"}],
        )
    )
    job = any_framework.parse_any(dljob("echo", {"Leader": short()}), framework)
    assert (job.flavor.names, job.flavor.status) == ("job", "v1")


@pytest.mark.parametrize("name", ["keras", "", None, 3, ["jax"], {"jax": 1}, "../jax", "{{ jax }}", "JAX", "roles/jax"])
def test_an_unknown_framework(name: Any) -> None:
    job = dljob(name, {"Worker": short()})
    assert errors(job) == [
        f"spec.framework: {name!r} is no framework of this operator; it has {', '.join(kinds.FRAMEWORKS)}"
    ]


@pytest.mark.parametrize(
    ("replicas", "message"),
    [
        (None, "spec.replicas must be a map of replica types"),
        ({"Worker": []}, "spec.replicas.Worker must be a map with image or template"),
        ({"Worker": {}}, "spec.replicas.Worker has neither image nor template: give one of them"),
        ({"Worker": short(image="")}, "spec.replicas.Worker.image must be the name of an image, not ''"),
        ({"Worker": short(args="x")}, "spec.replicas.Worker.args must be a list of strings: put numbers and true or "),
        ({"Worker": short(command=[1])}, "spec.replicas.Worker.command must be a list of strings: put numbers and "),
        ({"Worker": short(env={"A": "b"})}, "spec.replicas.Worker.env must be a list of variables, each with a name"),
        ({"Worker": short(env=[{"value": "b"}])}, "spec.replicas.Worker.env must be a list of variables, each with a "),
        ({"Worker": short(resources=[])}, "spec.replicas.Worker.resources must be a map with requests and limits"),
        ({"Worker": short(replicas=2)}, "spec.replicas.Worker.replicas is unknown: use count, restartPolicy, image, "),
        ({"Worker": short(count="2")}, "spec.replicas.Worker.count must be a whole number, not '2'"),
        ({"Worker": short(count=-1)}, "spec.replicas.Worker.count is -1: it must be between 0 and "),
        ({"Worker": short(template={})}, "spec.replicas.Worker has template and image: move these into the "),
        (
            {"Server": short()},
            "spec.replicas.Server: 'Server' is not a replica type of pytorch; it must be one of Master",
        ),
        ({"Master": short(count=2)}, "spec.replicas.Master.count is 2: a job has at most 1 Master"),
        (
            {"Worker": {"template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}}},
            "spec.replicas.Worker.template.spec.containers: a container named 'pytorch' is required",
        ),
    ],
)
def test_replicas_that_are_refused(replicas: Any, message: str) -> None:
    found = errors(dljob("pytorch", replicas))
    assert any(text.startswith(message) for text in found), found


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"options": []}, "spec.options must be a map"),
        (
            {"options": {"tensorboard": {}}},
            "spec.options.tensorboard is no option of pytorch: it has elasticPolicy, nprocPerNode",
        ),
        (
            {"elasticPolicy": {}},
            "spec.elasticPolicy is unknown: use framework, replicas, options, runPolicy, schedulerName, runtimeId, and "
            "spec.options for pytorch",
        ),
        ({"options": {"elasticPolicy": 3}}, "spec.options.elasticPolicy must be a map, not 3"),
        ({"options": {"nprocPerNode": "x y"}}, "spec.options.nprocPerNode"),
        ({"runPolicy": {"backoffLimit": -1}}, "spec.runPolicy.backoffLimit is -1: it must be between 0 and "),
    ],
)
def test_fields_that_are_refused(spec: Any, message: str) -> None:
    found = errors(dljob("pytorch", {"Worker": short()}, **spec))
    assert any(text.startswith(message) for text in found), found


def test_the_options_of_each_framework() -> None:
    options = {
        "mxnet": ["jobMode", "terminationPolicy"],
        "tensorflow": ["enableDynamicWorker", "successPolicy", "tensorboard", "terminationPolicy", "tfImage"],
        "pytorch": ["elasticPolicy", "nprocPerNode"],
        "jax": [],
        "xgboost": ["terminationPolicy"],
        "caffe2": ["backendSpecs"],
    }
    assert {name: any_framework.option_names(ALL[name]) for name in options} == options


def test_an_autoscaler_cannot_scale_it() -> None:
    found = errors(
        dljob(
            "pytorch", {"Worker": short()}, options={"elasticPolicy": {"maxReplicas": 2, "metrics": [{"type": "Pods"}]}}
        )
    )
    assert found == [
        "spec.options.elasticPolicy.metrics: a DLJob has no scale subresource, which this needs: remove it, or use a "
        "PyTorchJob"
    ]


GROUPS = {"large": (1, {"image": "large:1", "args": ["--large"]}), "small": (1, {})}


def test_groups_in_the_short_form() -> None:
    own_job = parse_job(grouped(pytorchjob(1, 3), "Worker", **GROUPS), PYTORCH)
    large = short(name="large", image="large:1", args=["--large"])
    small = {
        "name": "small",
        "count": 1,
        "template": {"spec": {"containers": [{"name": "pytorch", "image": "train:1"}]}},
    }
    job = parsed(dljob("pytorch", {"Master": short(), "Worker": short(count=3, groups=[large, small])}))
    expected = plan(own_job, PYTORCH, observed(own_job, services=False), NOW)
    made = plan(job, ALL["pytorch"], observed(job, services=False), NOW)
    assert [comparable(pod) for pod in made.pods] == [comparable(pod) for pod in expected.pods]
    assert [pod["metadata"]["labels"].get("dljob.operator/replica-group") for pod in made.pods] == [
        None,
        "large",
        "small",
        None,
    ]


@pytest.mark.parametrize(
    ("groups", "error"),
    [
        ({}, "spec.replicas.Worker.groups must be a list of groups, each with a name and its pods"),
        ([7], "spec.replicas.Worker.groups[0] must be a map with a name and its pods"),
        ([short()], "spec.replicas.Worker.groups[0].name is missing: name the group"),
        ([{"name": "a"}], "spec.replicas.Worker.groups[0] has neither image nor template: give one of them"),
        ([short(name="a", args=[1])], "spec.replicas.Worker.groups[0].args must be a list of strings"),
        (
            [short(name="a", template={})],
            "spec.replicas.Worker.groups[0] has template and image: move these into the template's container",
        ),
        (
            [short(name="a", replicas=2)],
            "spec.replicas.Worker.groups[0].replicas is unknown: use name, count, image, command, args, env, resources",
        ),
        ([short(name="a", count=-1)], "spec.replicas.Worker.groups[0].count is -1: it must be between"),
        (
            [short(name="a", count=3)],
            "spec.replicas.Worker.groups have 3 replicas, and spec.replicas.Worker.count is 2: raise it to at least 3",
        ),
    ],
)
def test_groups_that_are_refused(groups: Any, error: str) -> None:
    (found,) = errors(dljob("jax", {"Worker": short(count=2, groups=groups)}))
    assert found.startswith(error)


# --- the container's own variables


def test_who_a_process_is_comes_from_the_operator() -> None:
    own = [
        {"name": "RANK", "value": "7"},
        {"name": "PYTHONUNBUFFERED", "value": "0"},
        {"name": "OWN", "value": "$(RANK)"},
    ]
    framework = ALL["pytorch"]
    resource = dljob("pytorch", {"Master": short(), "Worker": short(count=2, env=own)})
    job = any_framework.parse_any(resource, framework)
    (container,) = manifest_of(job, "worker", 1, framework=framework)["spec"]["containers"]
    assert [one for one in container["env"] if one["name"] == "RANK"] == [{"name": "RANK", "value": "2"}]
    assert container["env"][-2:] == own[1:]
    assert ignored_settings.find(job, pod_context(job, framework)) == {"Worker": "env of container pytorch: RANK"}
