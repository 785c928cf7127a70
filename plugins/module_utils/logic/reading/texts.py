"""The fields of a pod template that are texts in Kubernetes and that YAML easily makes numbers or booleans of.

The API server refuses a pod with such a field, and its message names neither the variable nor the container.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_list, as_mapping, maps


def not_texts(template: Mapping[str, Any], path: str) -> Iterator[str]:
    """The errors of a pod template, one sentence each; none for a field that has another error."""
    metadata, spec = as_mapping(template.get("metadata")), as_mapping(template.get("spec"))
    for holder, where, names in (
        (metadata, f"{path}.metadata", ("labels", "annotations")),
        (spec, f"{path}.spec", ("nodeSelector", "hostname", "subdomain")),
    ):
        for name in names:
            value = holder.get(name)
            if isinstance(value, Mapping):
                yield from (_error(one, f"{where}.{name}.{key}") for key, one in value.items() if not _is_text(one))
            elif not _is_text(value) and not isinstance(value, list):
                yield _error(value, f"{where}.{name}")
    for field in ("containers", "initContainers"):
        for number, container in enumerate(maps(spec.get(field))):
            yield from _of_container(container, f"{path}.spec.{field}[{number}]")


def _of_container(container: Mapping[str, Any], path: str) -> Iterator[str]:
    for field in ("command", "args"):
        for number, value in enumerate(as_list(container.get(field))):
            if not _is_text(value):
                yield _error(value, f"{path}.{field}[{number}]")
    for number, variable in enumerate(maps(container.get("env"))):
        name, value = variable.get("name"), variable.get("value")
        if not _is_text(name):
            yield _error(name, f"{path}.env[{number}].name")
        if not _is_text(value):
            yield _error(value, f"{path}.env[{number}].value of the variable {name}")


def _is_text(value: object) -> bool:
    """Whether the API server takes ``value``, which may be missing; to kubectl an unquoted date is a text."""
    return value is None or isinstance(value, (str, date))


def _error(value: object, where: str) -> str:
    shown = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    fix = "put it in quotes" if isinstance(value, (bool, int, float)) else "a list or a map cannot be there"
    return f"{where} is {shown[:100]}, and must be a text: {fix}"
