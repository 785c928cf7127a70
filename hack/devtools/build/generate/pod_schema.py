"""Schemas of the parts of a pod template: every field, without a description, so that an unknown one is refused.

The fields are those of the models of the installed Python client for Kubernetes, which are generated from the OpenAPI
document of a Kubernetes release. After its pin in requirements-dev.txt has changed, the definitions are out of date.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Mapping
from typing import Any

from devtools.build.generate.openapi import OPEN, Schema

NULLABLE = 2
"""Down to this level below a pod, its metadata or a container, a field may be null and stays so. The API server drops
the other nulls, and a template that has changed in that way would replace the pods of a running job."""
WHOLE = 99
"""A number of levels that no type has."""
ANY = "any"
"""The type of a value that a schema does not restrict."""
_ROOT = "V1PodTemplateSpec"
_SCALARS = {"str": "string", "int": "integer", "bool": "boolean", "datetime": "string", "object": ANY}
_UNRESTRICTED = {
    # quantities, which may be strings, integers and fractions
    ("PodSpec", "overhead"),
    ("ResourceRequirements", "limits"),
    ("ResourceRequirements", "requests"),
    ("VolumeResourceRequirements", "limits"),
    ("VolumeResourceRequirements", "requests"),
    ("EmptyDirVolumeSource", "sizeLimit"),
    ("ResourceFieldSelector", "divisor"),
    # a template has no use for these
    ("ObjectMeta", "managedFields"),
    ("ObjectMeta", "ownerReferences"),
    # Kubernetes creates no pod with it, so its fields are not worth their size
    ("PodSpec", "ephemeralContainers"),
}
_DECLARED = re.compile(r"(?:(?P<many>List|Dict)\[(?:str, )?)?(?P<one>\w+)\]?")


class Compact(dict[str, "object"]):
    """A schema that files have in one line of flow style as far as it fits: there are thousands of them."""


@functools.cache
def version() -> str:
    """The Kubernetes minor version of the client: client 37 is for Kubernetes 1.37."""
    return f"1.{str(_client().__version__).partition('.')[0]}"


@functools.cache
def types() -> Mapping[str, Mapping[str, str]]:
    """The types of which a pod template consists: each field and its type; [T] is a list, {T} a map of names."""
    models = _client().client.models
    found: dict[str, dict[str, str]] = {}
    waiting = [_ROOT]
    while waiting:
        model = getattr(models, waiting.pop())
        name = _short(model.__name__)
        if name in found:
            continue
        found[name] = {}
        declared = {model.attribute_map[attribute]: type_ for attribute, type_ in model.openapi_types.items()}
        for field in sorted(declared):
            found[name][field], inner = (ANY, "") if (name, field) in _UNRESTRICTED else _read(declared[field])
            waiting += [inner] if inner else []
    return found


def _client() -> Any:
    return importlib.import_module("kubernetes")  # late: this takes longer than the import of all that is here


def _short(model: str) -> str:
    return re.sub(r"^V\d+", "", model)


def _read(declared: str) -> tuple[str, str]:
    """A type of the client as :func:`types` has it, and the model that it refers to; "" for a scalar."""
    match = _DECLARED.fullmatch(declared)
    if match is None:
        raise ValueError(f"the client has a type {declared}, which is not known here")
    name = match["one"]
    one = _SCALARS.get(name) or _short(name)
    text = {None: one, "List": f"[{one}]", "Dict": f"{{{one}}}"}[match["many"]]
    return text, "" if name in _SCALARS else name


def fields(type_: str, levels: int = WHOLE, nullable: int = NULLABLE) -> dict[str, Schema]:
    """The fields of a type. Those more than ``levels`` deep are of any type."""
    return {name: _schema(declared, levels - 1, nullable - 1) for name, declared in types()[type_].items()}


def _schema(declared: str, levels: int, nullable: int) -> Schema:
    found = _of_type(declared, levels, nullable)
    return Compact(found, nullable=True) if nullable >= 0 else found


def _of_type(declared: str, levels: int, nullable: int) -> Schema:
    if declared.startswith("["):
        return Compact(type="array", items=_of_type(declared[1:-1], levels, nullable))
    if declared.startswith("{"):
        return Compact(type="object", additionalProperties=_of_type(declared[1:-1], levels, nullable))
    if declared == ANY:
        return Compact({OPEN: True})
    if declared not in types():
        return Compact(type=declared)
    if declared == "Container":
        nullable = NULLABLE
    if levels <= 0:
        return Compact({OPEN: True})
    return Compact(type="object", properties=Compact(fields(declared, levels, nullable)))
