"""Reading unvalidated input."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.mappings import as_mapping


@pytest.mark.parametrize(("value", "read"), [({"a": 1}, {"a": 1}), (None, {}), ("x", {}), ([1], {}), (0, {})])
def test_anything_but_a_mapping_is_an_empty_one(value: Any, read: dict[str, int]) -> None:
    assert as_mapping(value) == read
