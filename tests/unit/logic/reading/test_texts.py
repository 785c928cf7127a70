"""Fields of a template that must be texts: the errors name the variable, which those of the API server do not."""

from __future__ import annotations

import copy
from datetime import date
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.texts import not_texts
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support.builders import CAFFE2, MPI, MXNET, PYTORCH, caffe2job, grouped, mpijob, mxjob, pytorchjob

VARIABLE = {"name": "THREADS", "value": 4}
MUST = "and must be a text: put it in quotes"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (
            {"spec": {"containers": [{}, {"env": [{"name": "A", "value": "1"}, VARIABLE]}]}},
            [f"t.spec.containers[1].env[1].value of the variable THREADS is 4, {MUST}"],
        ),
        (
            {"spec": {"initContainers": [{"env": [{"name": "DEBUG", "value": True}]}]}},
            [f"t.spec.initContainers[0].env[0].value of the variable DEBUG is true, {MUST}"],
        ),
        (
            {"spec": {"containers": [{"env": [{"name": 8, "value": "a"}]}]}},
            [f"t.spec.containers[0].env[0].name is 8, {MUST}"],
        ),
        (
            {"spec": {"containers": [{"env": [{"name": "A", "value": ["x"]}]}]}},
            [
                "t.spec.containers[0].env[0].value of the variable A is ['x'], and must be a text: a list or a map "
                "cannot be there"
            ],
        ),
        (
            {"spec": {"containers": [{"command": ["train", 1.5], "args": ["--epochs", 3, False]}]}},
            [
                f"t.spec.containers[0].command[1] is 1.5, {MUST}",
                f"t.spec.containers[0].args[1] is 3, {MUST}",
                f"t.spec.containers[0].args[2] is false, {MUST}",
            ],
        ),
        (
            {"metadata": {"labels": {"run": 7}, "annotations": {"a": False, "b": "x"}}},
            [f"t.metadata.labels.run is 7, {MUST}", f"t.metadata.annotations.a is false, {MUST}"],
        ),
        (
            {"spec": {"nodeSelector": {"gpu": True}, "hostname": 12, "subdomain": 3}},
            [
                f"t.spec.nodeSelector.gpu is true, {MUST}",
                f"t.spec.hostname is 12, {MUST}",
                f"t.spec.subdomain is 3, {MUST}",
            ],
        ),
        (
            {
                "metadata": {"labels": {"a": None}, "annotations": None},
                "spec": {
                    "containers": [{"env": [{"name": "A", "value": None}, {"name": "B"}], "args": [date(2026, 1, 2)]}]
                },
            },
            [],
        ),
        ({"metadata": 1, "spec": {"containers": "x", "initContainers": [4]}}, []),
    ],
)
def test_errors(template: dict[str, Any], expected: list[str]) -> None:
    before = copy.deepcopy(template)
    assert list(not_texts(template, "t")) == expected
    assert template == before


@pytest.mark.parametrize(
    ("framework", "resource", "where"),
    [
        (PYTORCH, pytorchjob(1, 1), ("pytorchReplicaSpecs", "Worker")),
        (CAFFE2, caffe2job(1), ("replicaSpecs",)),
        (MPI, mpijob(), ("mpiReplicaSpecs", "Launcher")),
        (MXNET, mxjob().v1alpha1().resource(), ("replicaSpecs", 0)),
    ],
    ids=["map", "single", "first container", "list"],
)
def test_a_job_is_refused_with_the_name_of_the_variable(
    framework: Framework, resource: dict[str, Any], where: tuple[Any, ...]
) -> None:
    entry: Any = resource["spec"]
    for key in where:
        entry = entry[key]
    entry["template"]["spec"]["containers"][0]["env"] = [VARIABLE]
    with pytest.raises(InvalidJob, match=r"containers\[0\]\.env\[0\]\.value of the variable THREADS is 4"):
        parse_job(resource, framework)


def test_also_in_the_template_of_a_group() -> None:
    resource = grouped(pytorchjob(1, 2), "Worker", large=(1, {"env": [VARIABLE]}))
    with pytest.raises(InvalidJob, match=r"Worker\.groups\[0\]\.template.* of the variable THREADS is 4"):
        parse_job(resource, PYTORCH)
