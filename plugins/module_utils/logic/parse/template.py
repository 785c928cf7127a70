"""What the parser reads of a pod template, which may be malformed: validation comes later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.fields import (
    MAX_PORT,
    Bounds,
    Parsing,
    integer,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_list, as_mapping, maps


def container_names(template: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of its containers."""
    containers = as_list(as_mapping(template.get("spec")).get("containers"))
    return tuple(str(as_mapping(one).get("name")) for one in containers)


def named_port(template: Mapping[str, Any], path: str, default: int, parsing: Parsing) -> int:
    """The containerPort of the flavor's name of the framework's container in the template, like in v1."""
    container, name = parsing.framework.container_of(container_names(template)), parsing.flavor.port_name
    for candidate in maps(as_mapping(template.get("spec")).get("containers")) if name else ():
        for port in maps(candidate.get("ports")) if candidate.get("name") == container else ():
            if port.get("name") == name:
                where = f"{path}.spec.containers: containerPort {name} of {container}"
                return integer(port.get("containerPort"), where, Bounds(default, 1, MAX_PORT), parsing.errors)
    return default
