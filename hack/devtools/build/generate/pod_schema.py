"""Schemas of the parts of a pod template: every field, without a description, so that an unknown one is refused."""

from __future__ import annotations

from devtools.build.generate import pod_fields
from devtools.build.generate.openapi import OPEN, Schema

NULLABLE = 2
"""Down to this level below a pod, its metadata or a container, a field may be null and stays so. The API server drops
the other nulls, and a template that has changed in that way would replace the pods of a running job."""
WHOLE = 99
"""A number of levels that no type has."""


class Compact(dict[str, "object"]):
    """A schema that files have in one line of flow style as far as it fits: there are thousands of them."""


def fields(type_: str, levels: int = WHOLE, nullable: int = NULLABLE) -> dict[str, Schema]:
    """The fields of a type. Those more than ``levels`` deep are of any type."""
    return {name: _schema(declared, levels - 1, nullable - 1) for name, declared in pod_fields.types()[type_].items()}


def one(type_: str) -> Schema:
    """An object of a type."""
    return _schema(type_, WHOLE, NULLABLE)


def _schema(declared: str, levels: int, nullable: int) -> Schema:
    found = _of_type(declared, levels, nullable)
    return Compact(found, nullable=True) if nullable >= 0 else found


def _of_type(declared: str, levels: int, nullable: int) -> Schema:
    if declared.startswith("["):
        return Compact(type="array", items=_of_type(declared[1:-1], levels, nullable))
    if declared.startswith("{"):
        return Compact(type="object", additionalProperties=_of_type(declared[1:-1], levels, nullable))
    if declared == pod_fields.ANY:
        return Compact({OPEN: True})
    if declared not in pod_fields.types():
        return Compact(type=declared)
    if declared == "Container":
        nullable = NULLABLE
    if levels <= 0:
        return Compact({OPEN: True})
    return Compact(type="object", properties=Compact(fields(declared, levels, nullable)))
