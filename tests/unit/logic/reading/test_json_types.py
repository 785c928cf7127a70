"""Which values are reported, and under which field."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.json_types import without_json

DAY = datetime.date(2024, 1, 15)


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "2024-01-15", [], {}, {"a": [{"b": None}], 1: "x"}])
def test_what_json_has(value: Any) -> None:
    assert without_json(value) == ""


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"spec": {"a": [{"value": "x"}, {"value": DAY}]}}, "spec.a[1].value: 2024-01-15 is a date, not a string"),
        ({"a": (DAY,)}, "a[0]: 2024-01-15 is a date, not a string"),
        ({"a": DAY, "b": b""}, "a: 2024-01-15 is a date, not a string"),
        (
            {"metadata": {"annotations": {"x/y": datetime.datetime(2024, 1, 15, 10, 30)}}},
            "metadata.annotations.x/y: 2024-01-15 10:30:00 is a point in time, not a string",
        ),
        ({"a": float("nan")}, "a: nan is no number that JSON has"),
        ({"a": -float("inf")}, "a: -inf is no number that JSON has"),
        ({"a": b"x"}, "a: a value of the type bytes, which JSON lacks"),
        ({"a": {1}}, "a: a value of the type set, which JSON lacks"),
    ],
)
def test_what_it_lacks(value: Any, error: str) -> None:
    assert without_json(value) == error
