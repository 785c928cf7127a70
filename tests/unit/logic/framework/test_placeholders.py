"""Substitution of placeholders such as ``{index}``."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.placeholders import fill
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{index}", "3"),
        ("{host}:{port}", "a:80"),
        ("no braces", "no braces"),
        ("{{index}}", "{3}"),
        ("{ index }", "{ index }"),
        ("{}", "{}"),
        ('{"json": {index}}', '{"json": 3}'),
    ],
)
def test_fill(text: str, filled: str) -> None:
    assert fill(text, {"index": 3, "host": "a", "port": 80}) == filled


def test_a_value_is_not_filled_again() -> None:
    assert fill("{job}", {"job": "{index}", "index": 3}) == "{index}"


def test_an_unknown_name() -> None:
    with pytest.raises(InvalidFramework, match=r"unknown placeholder \{nr\} in 'x\{nr\}'; there are: host, index"):
        fill("x{nr}", {"index": 3, "host": "a"})
