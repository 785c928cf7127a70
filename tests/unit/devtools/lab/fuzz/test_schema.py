"""What the generator makes of a schema."""

from __future__ import annotations

import random
from typing import Any

import pytest
from devtools.lab.fuzz.schema import Sizes, generate

TABLE: list[tuple[dict[str, Any], Any]] = [
    ({"enum": ["a", "b"]}, lambda v: v in ("a", "b")),
    ({"type": "integer", "minimum": 3, "maximum": 4}, lambda v: v in (3, 4)),
    ({"type": "integer", "minimum": 1, "maximum": 65535}, lambda v: 1 <= v <= 7),
    ({"type": "boolean"}, lambda v: isinstance(v, bool)),
    ({"type": "number"}, lambda v: isinstance(v, float)),
    ({"type": "string", "maxLength": 2}, lambda v: isinstance(v, str) and len(v) <= 2),
    ({"type": "string", "minLength": 12}, lambda v: len(v) >= 12),
    ({"type": "string", "format": "date-time"}, lambda v: v.endswith("Z")),
    ({"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "boolean"}}, lambda v: len(v) == 2),
    ({"x-kubernetes-int-or-string": True}, lambda v: isinstance(v, (int, str))),
    ({"type": "object", "additionalProperties": {"type": "boolean"}}, lambda v: all(isinstance(x, bool) for x in v.values())),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "wanted"), TABLE, ids=[str(schema)[:50] for schema, _ in TABLE])
def test_a_value_is_of_its_schema(schema: dict[str, Any], wanted: Any) -> None:
    for seed in range(50):
        assert wanted(generate(schema, random.Random(seed)))


def test_required_properties_are_there_and_others_sometimes() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "boolean"}, "b": {"type": "boolean"}}}
    found = [set(generate(schema, random.Random(seed))) for seed in range(50)]
    assert all("a" in keys for keys in found)
    assert {"b" in keys for keys in found} == {True, False}
    assert all(
        keys == {"a"} for keys in (set(generate(schema, random.Random(s), Sizes(optional=0.0))) for s in range(9))
    )


def test_a_nullable_value_is_sometimes_null() -> None:
    schema = {"type": "integer", "nullable": True}
    assert {generate(schema, random.Random(seed)) is None for seed in range(100)} == {True, False}
