"""Builders of structural schemas. Their signatures require a description for every part."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devtools.definitions import load

Schema = dict[str, Any]
Rule = dict[str, str]

OPEN = "x-kubernetes-preserve-unknown-fields"
"""Preserves unknown fields, which the API server otherwise drops or, under strict validation, rejects."""
RULES = "x-kubernetes-validations"
"""The key of CEL rules."""
LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
"""The pattern of a label of a host name."""


def part(name: str) -> Any:
    """A copy of the schema in the file ``<name>.yaml``: a part that does not depend on the kind."""
    return copy.deepcopy(_read(Path(__file__).with_name(f"{name}.yaml")))


@functools.cache
def _read(file: Path) -> Any:
    return load(file.read_text(encoding="utf-8"))


def rule(
    expression: str, *, unless: Sequence[str] = (), message: str = "", computed: str = "", field: str = ""
) -> Rule:
    """A CEL rule: ``expression`` must be true, unless one of ``unless`` is.

    ``message`` is the error for the user, ``computed`` a CEL expression for it, ``field`` the path (``.replicas``) that
    the error refers to, relative to the schema with the rule. Computed messages use ``format``, whose cost the API
    server estimates by the template; a concatenation is estimated by the longest strings, which exceeds the cost limit.
    """
    if bool(message) == bool(computed):
        raise ValueError(f"rule {expression!r}: give either message or computed")
    text = {"message": message} if message else {"messageExpression": computed}
    return {"rule": " || ".join([*unless, expression]), **text, **({"fieldPath": field} if field else {})}


def string(description: str, *, choices: Sequence[str] = (), rules: Sequence[Rule] = (), **more: Any) -> Schema:
    """A string; one of ``choices`` if any are given."""
    return _with_rules(
        {"description": description, "type": "string", **({"enum": [*choices]} if choices else {}), **more},
        rules,
    )


def integer(description: str, *, minimum: int | None = None, maximum: int | None = None, **more: Any) -> Schema:
    """A 32-bit integer between ``minimum`` and ``maximum``, inclusive."""
    bounds = {name: bound for name, bound in (("minimum", minimum), ("maximum", maximum)) if bound is not None}
    return {"description": description, "type": "integer", "format": "int32", **bounds, **more}


def record(
    description: str,
    properties: Mapping[str, Schema],
    *,
    required: Sequence[str] = (),
    rules: Sequence[Rule] = (),
    open_: bool = False,
) -> Schema:
    """An object with named fields; ``open_`` preserves unknown ones."""
    schema: Schema = {"description": description, "type": "object"}
    if required:
        schema["required"] = [*required]
    if properties:
        schema["properties"] = dict(properties)
    if open_:
        schema[OPEN] = True
    return _with_rules(schema, rules)


def mapping(description: str, values: Schema, *, most: int, rules: Sequence[Rule] = ()) -> Schema:
    """An object with arbitrary keys, at most ``most``; the API server needs the bound to estimate the cost of rules."""
    schema = {
        "description": description,
        "type": "object",
        "maxProperties": most,
        "additionalProperties": values,
    }
    return _with_rules(schema, rules)


def array(description: str, items: Schema, *, most: int, rules: Sequence[Rule] = ()) -> Schema:
    """An atomic list; bounded for the same reason as :func:`mapping`."""
    schema = {
        "description": description,
        "type": "array",
        "maxItems": most,
        "x-kubernetes-list-type": "atomic",
        "items": items,
    }
    return _with_rules(schema, rules)


def quoted(texts: Sequence[str]) -> str:
    """A CEL list of the texts."""
    return "[" + ", ".join(f"'{text}'" for text in texts) + "]"


def listed(names: Sequence[str], last: str) -> str:
    """The names with commas, and the word ``last`` before the last one."""
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _with_rules(schema: Schema, rules: Sequence[Rule]) -> Schema:
    return {**schema, RULES: [*rules]} if rules else schema
