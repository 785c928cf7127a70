"""Random objects that a structural schema of Kubernetes accepts, apart from its rules in CEL. Pure.

Why not hypothesis-jsonschema: 0.23.1 takes 17 s for the schema of an MXJob, and then breaks on hypothesis 6.170.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from devtools.lab.fuzz import values

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Sizes:
    """Limits of what is generated. ``optional`` is the probability of an optional property."""

    optional: float = 0.4
    items: int = 3
    number: int = 6
    """The largest ordinary number: replicas must not fill the cluster."""
    depth: int = 12
    names: tuple[str, ...] = field(default=("a", "b", "example.com/c"))
    """Keys of mappings with arbitrary keys."""


DEFAULT = Sizes()


def generate(schema: Schema, rng: random.Random, sizes: Sizes = DEFAULT, depth: int = 0) -> Any:
    """A value for ``schema``: an object has all required properties and some of the others."""
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if schema.get("nullable") and rng.random() < 0.1:
        return None
    if schema.get("x-kubernetes-int-or-string"):
        return rng.choice((rng.randrange(sizes.number), "100m", "1Gi", "2"))
    match schema.get("type"):
        case "object":
            return _object(schema, rng, sizes, depth)
        case "array":
            return _array(schema, rng, sizes, depth)
        case "integer":
            return _number(schema, rng, sizes)
        case "number":
            return float(_number(schema, rng, sizes))
        case "boolean":
            return rng.random() < 0.5
        case "string":
            return _string(schema, rng)
    return _anything(rng)


def _object(schema: Schema, rng: random.Random, sizes: Sizes, depth: int) -> dict[str, Any]:
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    share = sizes.optional if depth < sizes.depth else 0.0
    found = {
        name: generate(one, rng, sizes, depth + 1)
        for name, one in properties.items()
        if name in required or rng.random() < share
    }
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        for name in rng.sample(sizes.names, rng.randrange(len(sizes.names) + 1)):
            found[name] = generate(others, rng, sizes, depth + 1)
    if schema.get("x-kubernetes-preserve-unknown-fields") and rng.random() < 0.1:
        found[rng.choice(("unknown", "x-other", "ünknown"))] = _anything(rng)
    return found


def _array(schema: Schema, rng: random.Random, sizes: Sizes, depth: int) -> list[Any]:
    least = int(schema.get("minItems", 0))
    most = max(least, min(int(schema.get("maxItems", sizes.items)), sizes.items))
    return [generate(schema.get("items") or {}, rng, sizes, depth + 1) for _ in range(rng.randint(least, most))]


def _number(schema: Schema, rng: random.Random, sizes: Sizes) -> int:
    least = int(schema.get("minimum", 0))
    most = int(schema.get("maximum", least + sizes.number))
    return rng.randint(least, min(most, least + sizes.number))


def _string(schema: Schema, rng: random.Random) -> str:
    if schema.get("format") == "date-time":
        return rng.choice(("2026-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"))
    text = values.text(rng) if rng.random() < 0.2 else rng.choice(("a", "worker", "example.com/none:1", "main"))
    text = text[: int(schema.get("maxLength", len(text)))]
    return text.ljust(int(schema.get("minLength", 0)), "x")


def _anything(rng: random.Random) -> Any:
    return values.pick(rng, (values.text(rng), rng.choice(values.NUMBERS), *values.OF_OTHER_TYPES))
