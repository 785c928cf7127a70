"""Reading unvalidated input."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import (
    as_count,
    as_list,
    as_mapping,
    maps,
)

NOT_A_DICT = MappingProxyType({"a": 1})


@pytest.mark.parametrize(
    ("value", "read"),
    [({"a": 1}, {"a": 1}), (NOT_A_DICT, {"a": 1}), (None, {}), ("x", {}), ([1], {}), (0, {})],
)
def test_anything_but_a_mapping_is_an_empty_one(value: Any, read: dict[str, int]) -> None:
    assert as_mapping(value) == read


@pytest.mark.parametrize(("value", "read"), [([1, {"a": 1}], [1, {"a": 1}]), (None, []), ("x", []), ({"a": 1}, [])])
def test_anything_but_a_list_is_an_empty_one(value: Any, read: list[Any]) -> None:
    assert as_list(value) == read


@pytest.mark.parametrize(
    ("value", "read"),
    [([1, {"a": 1}, None, {}, NOT_A_DICT], [{"a": 1}, {}, {"a": 1}]), (None, []), ({"a": 1}, [])],
)
def test_only_the_mappings_of_a_list_are_read(value: Any, read: list[Any]) -> None:
    assert maps(value) == read


@pytest.mark.parametrize(("value", "read"), [(3, 3), (1, 1), (0, 0), (-1, 0), (True, 0), (2.0, 0), ("3", 0), (None, 0)])
def test_anything_but_a_whole_number_above_0_is_0(value: Any, read: int) -> None:
    assert as_count(value) == read
