"""The pod hook's defaults: what a template lacks is added, what it has stays."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import loader
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.pod_defaults import merge
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from support.builders import ECHO_DECLARATION, TENSORFLOW, echojob, manifest_of, tfjob


@pytest.mark.parametrize(
    ("template", "defaults", "merged"),
    [
        pytest.param({}, {"spec": {"a": 1}}, {"spec": {"a": 1}}, id="an empty template"),
        pytest.param({"spec": None}, {"spec": {"a": 1}}, {"spec": {"a": 1}}, id="null"),
        pytest.param({"spec": {"a": 2}}, {"spec": {"a": 1, "b": 3}}, {"spec": {"a": 2, "b": 3}}, id="its own value"),
        pytest.param({"spec": {"a": False}}, {"spec": {"a": True}}, {"spec": {"a": False}}, id="false is a value"),
        pytest.param({"a": ""}, {"a": "b"}, {"a": ""}, id="an empty text is a value"),
        pytest.param(
            {"serviceAccountName": ""}, {"serviceAccountName": "b"}, {"serviceAccountName": "b"}, id="but no account"
        ),
        pytest.param(
            {"serviceAccountName": "a"}, {"serviceAccountName": "b"}, {"serviceAccountName": "a"}, id="its own account"
        ),
        pytest.param(
            {"containers": [{"name": "x", "image": "own"}]},
            {"containers": [{"name": "y"}, {"name": "x", "image": "i", "tty": True}]},
            {"containers": [{"name": "x", "image": "own", "tty": True}, {"name": "y"}]},
            id="containers by name, its own first",
        ),
        pytest.param(
            {"volumeMounts": [{"name": "a", "mountPath": "/m"}]},
            {"volumeMounts": [{"name": "b", "mountPath": "/m"}, {"name": "c", "mountPath": "/n"}]},
            {"volumeMounts": [{"name": "a", "mountPath": "/m"}, {"name": "c", "mountPath": "/n"}]},
            id="mounts by path",
        ),
        pytest.param(
            {"args": ["-x"]}, {"command": ["p"], "args": ["-y"]}, {"args": ["-x"]}, id="args exclude a command"
        ),
        pytest.param({"command": ["q"]}, {"args": ["-y"]}, {"command": ["q"]}, id="a command excludes args"),
        pytest.param(
            {"args": ["-x"]}, {"command": ["p"], "tty": True}, {"args": ["-x"], "tty": True}, id="and nothing else"
        ),
        pytest.param({"command": []}, {"command": ["p"]}, {"command": ["p"]}, id="an empty list means none"),
        pytest.param(
            {"securityContext": {"privileged": True}},
            {"securityContext": {"allowPrivilegeEscalation": False}},
            {"securityContext": {"privileged": True}},
            id="a security context is one value",
        ),
        pytest.param(
            {"securityContext": {}},
            {"securityContext": {"runAsUser": 1}},
            {"securityContext": {"runAsUser": 1}},
            id="an empty security context is none",
        ),
        pytest.param({"tolerations": [1]}, {"tolerations": [2]}, {"tolerations": [1]}, id="lists without a key"),
        pytest.param({"spec": "x"}, {"spec": {"a": 1}}, {"spec": "x"}, id="a text for a mapping"),
        pytest.param({"a": {"b": 1}}, {"a": "x"}, {"a": {"b": 1}}, id="a mapping for a text"),
        pytest.param({"containers": "x"}, {"containers": [{"name": "y"}]}, {"containers": "x"}, id="malformed"),
    ],
)
def test_merge(template: Any, defaults: Any, merged: Any) -> None:
    before = repr((template, defaults))
    assert merge(template, defaults) == merged
    assert repr((template, defaults)) == before, "neither is changed"


def framework_with(hook: Any) -> Any:
    return loader.framework({**ECHO_DECLARATION, "hooks": {"pod": "a.b.c"}}, {"pod": hook})


@pytest.mark.parametrize("value", [["a"], {}, 5, None])
def test_a_malformed_key_is_left_to_the_api_server(value: Any) -> None:
    own, default = {"volumes": [{"name": value}]}, {"volumes": [{"name": "keys"}]}
    assert merge(own, default) == {"volumes": [{"name": value}, {"name": "keys"}]}


def test_a_hook_gets_the_replica_and_its_defaults_reach_the_pod() -> None:
    def hook(cluster: Any) -> Any:
        if cluster["task"]["type"] != "Follower":
            return {}
        init = {"name": "wait", "image": "i", "command": ["wait", cluster["replicas"]["Leader"][0]["host"]]}
        return {"metadata": {"labels": {"rank": str(cluster["task"]["rank"])}}, "spec": {"initContainers": [init]}}

    framework = framework_with(hook)
    job = parse_job(echojob(2), framework)
    follower = manifest_of(job, "follower", 1, framework=framework)
    assert follower["spec"]["initContainers"][0]["command"] == ["wait", "hello-leader-0"]
    assert follower["metadata"]["labels"]["rank"] == "2"
    assert "initContainers" not in manifest_of(job, "leader", 0, framework=framework)["spec"]


def test_the_container_of_a_type_without_a_template_is_that_of_its_first_replica() -> None:
    """Its image is part of the spec hash: another one would restart the replicas with a new release."""

    def hook(cluster: Any) -> Any:
        task = cluster["task"]
        return {"spec": {"containers": [{"name": "tensorflow", "image": f"of:{task['index']}-{task['rank']}"}]}}

    framework = dataclasses.replace(TENSORFLOW, hooks=dataclasses.replace(TENSORFLOW.hooks, pod=hook))
    group = parse_job(tfjob(master=1, ps=2), framework).group("PS")
    assert group is not None
    assert group.template == {"spec": {"containers": [{"name": "tensorflow", "image": "of:0-0"}]}}


@pytest.mark.parametrize("returned", [None, [], {"containers": []}])
def test_a_hook_that_returns_no_template(returned: Any) -> None:
    framework = framework_with(lambda cluster: returned)
    with pytest.raises(InvalidFramework, match=r"hooks\.pod must return a mapping with metadata and spec"):
        manifest_of(parse_job(echojob(1), framework), "leader", 0, framework=framework)
