"""Builders of the parts that a structural schema is made of. Every part carries a description, by signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Schema = dict[str, Any]
Rule = dict[str, str]

OPEN = "x-kubernetes-preserve-unknown-fields"
"""Keeps what the schema does not name. Without it the API server drops, or under strict validation refuses, it."""


def rule(
    expression: str, *, unless: Sequence[str] = (), message: str = "", computed: str = "", field: str = ""
) -> Rule:
    """A CEL rule: ``expression`` must be true, except where one of ``unless`` is.

    ``message`` is what the user reads where it fails, ``computed`` a CEL expression that gives it, ``field`` the path
    (``.replicas``) that the complaint is about, relative to the schema that carries the rule. A computed message is put
    together by ``format``: the API server prices it by its template, and a sum of strings by their longest, too dear.
    """
    if bool(message) == bool(computed):
        raise ValueError(f"rule {expression!r}: give either message or computed")
    text = {"message": message} if message else {"messageExpression": computed}
    return {"rule": " || ".join([*unless, expression]), **text, **({"fieldPath": field} if field else {})}


def string(description: str, *, choices: Sequence[str] = (), rules: Sequence[Rule] = (), **more: Any) -> Schema:
    """A text; one of ``choices`` if there are any."""
    return _with_rules(
        {"description": description, "type": "string", **({"enum": [*choices]} if choices else {}), **more},
        rules,
    )


def time(description: str) -> Schema:
    """A moment in RFC 3339."""
    return string(description, format="date-time")


def integer(description: str, *, minimum: int | None = None, maximum: int | None = None, **more: Any) -> Schema:
    """A number of 32 bits, between ``minimum`` and ``maximum``, both included."""
    bounds = {name: bound for name, bound in (("minimum", minimum), ("maximum", maximum)) if bound is not None}
    return {"description": description, "type": "integer", "format": "int32", **bounds, **more}


def boolean(description: str) -> Schema:
    """Yes or no."""
    return {"description": description, "type": "boolean"}


def record(
    description: str,
    properties: Mapping[str, Schema],
    *,
    required: Sequence[str] = (),
    rules: Sequence[Rule] = (),
    open_: bool = False,
) -> Schema:
    """An object of named fields; ``open_`` keeps fields that have no name here."""
    schema: Schema = {"description": description, "type": "object"}
    if required:
        schema["required"] = [*required]
    if properties:
        schema["properties"] = dict(properties)
    if open_:
        schema[OPEN] = True
    return _with_rules(schema, rules)


def mapping(description: str, values: Schema, *, most: int, rules: Sequence[Rule] = ()) -> Schema:
    """An object with free keys, at most ``most`` of them: a bound is what makes the cost of a rule computable."""
    schema = {
        "description": description,
        "type": "object",
        "maxProperties": most,
        "additionalProperties": values,
    }
    return _with_rules(schema, rules)


def array(description: str, items: Schema, *, most: int, rules: Sequence[Rule] = ()) -> Schema:
    """A list that a writer replaces as a whole; bounded for the same reason as :func:`mapping`."""
    schema = {
        "description": description,
        "type": "array",
        "maxItems": most,
        "x-kubernetes-list-type": "atomic",
        "items": items,
    }
    return _with_rules(schema, rules)


def anything(description: str) -> Schema:
    """A value of any shape."""
    return {"description": description, OPEN: True}


def _with_rules(schema: Schema, rules: Sequence[Rule]) -> Schema:
    return {**schema, "x-kubernetes-validations": [*rules]} if rules else schema
