"""What a declaration expands to: families, flavors at the top level, groups of kinds, static placeholders."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import declaration, loader
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ExitCodes, Framework
from support.builders import CAFFE2, JAX, MXNET, PADDLE, PYTORCH, TENSORFLOW, XGBOOST

ECHO = {"group": "example.com", "kind": "EchoJob", "versions": ["v1"]}
SHORT: dict[str, Any] = {
    "name": "echo",
    "kinds": [ECHO],
    "container": "echo",
    "replica_types": {"Leader": {"minimum": 1, "maximum": 1}, "Follower": {}},
    "extends": "kubeflow_v1",
    "replicas_fields": ["replicaSpecs"],
}
"""A framework with one flavor, whose keys are at the top level."""


def made(**changes: Any) -> Framework:
    return loader.framework({**SHORT, **changes})


def made_of(*flavors: dict[str, Any], **changes: Any) -> Framework:
    declared = {key: value for key, value in SHORT.items() if key not in ("extends", "replicas_fields")}
    return loader.framework({**declared, "flavors": [*flavors], **changes})


def test_a_flavor_at_the_top_level_has_the_keys_of_its_family() -> None:
    framework = made(default_port=7000)
    (flavor,) = framework.flavors
    assert framework.kinds == ("EchoJob",)
    assert (flavor.groups, flavor.replicas_layout, flavor.replicas_fields) == (
        ("example.com",),
        "map",
        ("replicaSpecs",),
    )
    assert (flavor.port_name, flavor.default_port, flavor.names, flavor.status) == ("echojob-port", 7000, "job", "v1")
    assert (flavor.default_restart_policy, flavor.default_clean_pod_policy) == ("Never", "None")
    assert (flavor.fails_by, flavor.environment_in) == ("any", "all")
    assert flavor.exit_codes == ExitCodes(frozenset(range(128, 256)), True)
    assert flavor.labels == {
        "training.kubeflow.org/operator-name": "echojob-controller",
        "training.kubeflow.org/job-name": "{job}",
        "training.kubeflow.org/replica-type": "{type_lower}",
        "training.kubeflow.org/replica-index": "{index}",
        "training.kubeflow.org/job-role": "{role}",
    }


def test_own_keys_replace_the_familys_and_labels_are_added() -> None:
    job_name = "training.kubeflow.org/job-name"
    (flavor,) = made(names="runtime-id", port_name="echo", labels={"a": "{kind_lower}", job_name: "x"}).flavors
    assert (flavor.names, flavor.port_name, flavor.labels["a"], flavor.labels[job_name]) == (
        "runtime-id",
        "echo",
        "echojob",
        "x",
    )
    assert len(flavor.labels) == 6


def test_a_flavor_of_several_groups_becomes_one_per_group() -> None:
    kinds = [ECHO, {**ECHO, "group": "b.org", "kind": "OldEcho"}]
    first, second = made_of({"extends": "v1alpha1_list", "port_name": "{kind_lower}"}, kinds=kinds).flavors
    assert (first.groups, second.groups) == (("example.com",), ("b.org",))
    assert (first.port_name, second.port_name) == ("echojob", "oldecho")
    assert "example.com" in first.labels and "b.org" in second.labels
    assert "{group}" not in first.labels


def test_plain_names_of_kinds_need_groups_in_the_flavor() -> None:
    (flavor,) = made(kinds=["EchoJob"], groups=["x.org"]).flavors
    assert (flavor.groups, flavor.port_name) == (("x.org",), "echojob-port")


def test_a_label_may_differ_by_kind_but_a_port_name_may_not() -> None:
    kinds = [ECHO, {**ECHO, "kind": "OtherJob"}]
    (flavor,) = made(kinds=kinds, port_name="").flavors
    assert flavor.labels["training.kubeflow.org/operator-name"] == "{kind_lower}-controller"
    with pytest.raises(InvalidFramework, match=r"framework.port_name: '\{kind_lower\}-port' needs one kind"):
        made(kinds=kinds)


def test_fields_are_what_the_filters_get() -> None:
    common = {"color": {"type": "string"}, "image": {"type": "string", "x-dljob-affects": "nothing"}}
    list_, map_ = made_of(
        {"extends": "v1alpha1_list"},
        {
            "extends": "kubeflow_v1",
            "replicas_fields": ["m"],
            "fields": {"shape": {}, "size": {"x-dljob-affects": "objects"}},
        },
        fields=common,
    ).flavors
    assert (list_.spec_fields, list_.object_fields) == (("color",), ())
    assert (map_.spec_fields, map_.object_fields) == (("color", "shape"), ("size",))


def test_the_modes_of_flavors_are_those_of_the_framework() -> None:
    framework = made(modes={"Fast": "dist"})
    assert framework.modes == {"local": "local", "dist": "dist", "Fast": "dist"}
    framework = made_of({"extends": "v1alpha1_list", "modes": {"Fast": "dist"}}, modes={"Slow": "local"})
    assert framework.modes == {"local": "local", "dist": "dist", "Slow": "local", "Fast": "dist"}


def test_the_kinds_of_a_declaration() -> None:
    full = {**ECHO, "versions": ["v2", "v1"], "short_names": ["ej"], "scale": "Follower"}
    assert declaration.kinds({"kinds": [full, {**ECHO, "group": "example.org"}, "OtherJob"]}) == (
        declaration.Kind("EchoJob", "example.com", ("v2", "v1"), ("ej",), "Follower"),
        declaration.Kind("EchoJob", "example.org", ("v1",)),
        declaration.Kind("OtherJob"),
    )


@pytest.mark.parametrize(
    ("flavor", "said"),
    [
        ({"nome": "x"}, r"unknown key 'nome' in flavors\[1\]; there are: "),
        ({"rules": "x"}, r"flavors\[1\]\.rules must be a list, not 'x'"),
        ({"fields": "x"}, r"flavors\[1\]\.fields must be a mapping, not 'x'"),
        ({"labels": "x"}, r"flavors\[1\]\.labels must be a mapping, not 'x'"),
    ],
)
def test_mistakes_in_a_flavor(flavor: dict[str, Any], said: str) -> None:
    base = {"extends": "v1alpha1_list", "groups": ["example.com"]}
    with pytest.raises(InvalidFramework, match=said):
        made_of({**base, "groups": ["example.org"]}, {**base, **flavor})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"extends": "kubeflow_v2"}, "framework.extends: 'kubeflow_v2' is none of kubeflow_v1, v1alpha1_list"),
        ({"replicas_fields": []}, "framework lacks 'replicas_fields'"),
        ({"kinds": []}, "framework lacks 'groups': name the API groups there, or give each of kinds its group"),
        ({"kinds": [{"kind": "A"}]}, r"kinds\[0\] lacks 'group'"),
        ({"kinds": [{**ECHO, "version": "v1"}]}, r"unknown key 'version' in kinds\[0\]; there are: group, kind"),
        ({"kinds": [{**ECHO, "versions": "v1"}]}, r"kinds\[0\].versions must be a list of strings"),
        ({"kinds": [ECHO, ECHO]}, "kinds: EchoJob occurs twice; list all its versions in one entry"),
        ({"kinds": [3]}, r"kinds\[0\] must be a mapping, not 3"),
        ({"fields": ["color"]}, "fields must be a mapping"),
        ({"fields": {"color": "red"}}, "fields.color must be a mapping, not 'red'"),
        (
            {"fields": {"color": {"x-dljob-affects": "no"}}},
            "fields.color.x-dljob-affects: 'no' is none of pods, objects, nothing",
        ),
        ({"rules": "x"}, "rules must be a list"),
        ({"permissions": {}}, None),
        ({"permissions": {"a": "b"}}, "permissions must be a list"),
        ({"modes": {"Fast": "quick"}}, "modes.Fast: 'quick' is none of local, dist"),
        ({"flavors": [{}]}, "the framework has flavors: move 'extends' into each flavor that it is about"),
        ({"spec_fields": ["a"]}, "unknown key 'spec_fields' in the framework"),
    ],
)
def test_mistakes(change: dict[str, Any], said: str | None) -> None:
    if said is None:
        made(**change)
        return
    with pytest.raises(InvalidFramework, match=said):
        made(**change)


V1_LABELS = {
    "training.kubeflow.org/job-name": "{job}",
    "training.kubeflow.org/replica-type": "{type_lower}",
    "training.kubeflow.org/replica-index": "{index}",
    "training.kubeflow.org/job-role": "{role}",
}


@pytest.mark.parametrize(
    ("framework", "kind", "port_name", "port", "restart", "environment_in"),
    [
        (MXNET, "mxjob", "mxjob-port", 9091, "Never", "all"),
        (TENSORFLOW, "tfjob", "tfjob-port", 2222, "Never", "named"),
        (PYTORCH, "pytorchjob", "pytorchjob-port", 23456, "OnFailure", "all"),
        (PADDLE, "paddlejob", "master", 36543, "OnFailure", "all"),
        (JAX, "jaxjob", "jaxjob-port", 6666, "Never", "all"),
        (XGBOOST, "xgboostjob", "xgboostjob-port", 9999, "Never", "all"),
    ],
)
def test_v1_flavors_of_this_collection(
    framework: Framework, kind: str, port_name: str, port: int, restart: str, environment_in: str
) -> None:
    """What users of training-operator v1 rely on, in full."""
    flavor = framework.flavors[-1]
    assert flavor.groups == ("kubeflow.org",)
    assert flavor.labels == {"training.kubeflow.org/operator-name": f"{kind}-controller", **V1_LABELS}
    assert (flavor.port_name, flavor.default_port) == (port_name, port)
    assert (flavor.default_restart_policy, flavor.default_clean_pod_policy) == (restart, "None")
    assert (flavor.names, flavor.status, flavor.fails_by) == ("job", "v1", "any")
    assert flavor.environment_in == environment_in
    assert flavor.exit_codes == ExitCodes(frozenset(range(128, 256)), True)


@pytest.mark.parametrize(
    ("framework", "number", "group", "job_label", "codes"),
    [
        (MXNET, 0, "fioravanzo.org", "mx_job_name", set(range(128, 256))),
        (MXNET, 2, "kubeflow.org", "mx_job_name", {130, 137, 138, 143}),
        (TENSORFLOW, 0, "tensorflow.org", "tf_job_name", set(range(128, 256))),
        (TENSORFLOW, 1, "kubeflow.org", "tf_job_name", set(range(128, 256))),
    ],
)
def test_v1alpha1_flavors_of_this_collection(
    framework: Framework, number: int, group: str, job_label: str, codes: set[int]
) -> None:
    flavor = framework.flavors[number]
    assert flavor.groups == (group,)
    assert flavor.labels == {
        group: "",
        "job_type": "{type_upper}",
        "runtime_id": "{runtime_id}",
        job_label: "{job}",
        "task_index": "{index}",
    }
    assert (flavor.default_restart_policy, flavor.default_clean_pod_policy) == ("OnFailure", "Running")
    assert (flavor.names, flavor.status, flavor.fails_by) == ("runtime-id", "v1alpha1", "target")
    assert flavor.environment_in == "named"
    assert flavor.exit_codes == ExitCodes(frozenset(codes), False)


def test_what_the_filters_of_this_collection_get() -> None:
    assert [flavor.spec_fields for flavor in TENSORFLOW.flavors] == [(), (), ("enableDynamicWorker",)]
    assert {flavor.object_fields for flavor in TENSORFLOW.flavors} == {("tfImage", "tensorboard")}
    assert [flavor.spec_fields for flavor in MXNET.flavors] == [(), (), (), ()]
    assert [flavor.spec_fields for flavor in PYTORCH.flavors] == [("nprocPerNode", "elasticPolicy")]
    assert [flavor.spec_fields for flavor in CAFFE2.flavors] == [("backendSpecs",)]
    assert MXNET.modes == {"local": "local", "dist": "dist", "MXTrain": "dist", "MXTune": "local"}
