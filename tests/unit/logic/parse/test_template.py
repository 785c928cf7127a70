"""What the parser reads of templates that nothing has validated yet."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import Parsing
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.template import container_names, named_port
from support.builders import MXNET


def template(*ports: Any, name: str = "mxnet") -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "first"}, {"name": name, "ports": list(ports)}]}}


@pytest.mark.parametrize(
    ("given", "names"),
    [(template(), ("first", "mxnet")), ({}, ()), ({"spec": []}, ()), ({"spec": {"containers": [7]}}, ("None",))],
)
def test_container_names(given: dict[str, Any], names: tuple[str, ...]) -> None:
    assert container_names(given) == names


@pytest.mark.parametrize(
    ("given", "port", "errors"),
    [
        (template(), 9091, 0),
        (template({"name": "mxjob-port", "containerPort": 7}), 7, 0),
        (template({"name": "other", "containerPort": 7}), 9091, 0),
        (template({"name": "mxjob-port", "containerPort": 7}, name="main"), 9091, 0),
        (template({"name": "mxjob-port", "containerPort": 70000}), 9091, 1),
        (template("mxjob-port"), 9091, 0),
    ],
)
def test_named_port(given: dict[str, Any], port: int, errors: int) -> None:
    flavor = MXNET.flavors[-1]
    parsing = Parsing({}, flavor, MXNET, [])
    assert named_port(given, "spec.template", flavor.default_port, parsing) == port
    assert len(parsing.errors) == errors
