"""The strings that the objects of a cache share."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dljob_operator.engine.cache.string_pool import LARGEST, LONGEST, StringPool

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
OBJECTS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        LEAVES, lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=5), below, max_size=4)
    ),
    max_size=5,
)


def arrived(**fields: Any) -> dict[str, Any]:
    """An object as a document of its own, with its own strings."""
    return dict(json.loads(json.dumps(fields)))


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(found for below in value.values() for found in strings(below))]
    if isinstance(value, list):
        return [found for below in value for found in strings(below)]
    return [value] if isinstance(value, str) else []


@given(OBJECTS)
def test_the_object_stays_equal_and_in_its_order(obj: dict[str, Any]) -> None:
    shared = StringPool().sharing(obj)
    assert shared == obj
    assert json.dumps(shared) == json.dumps(obj)


def test_equal_strings_are_one_at_any_depth() -> None:
    pool = StringPool()
    first, second = (
        pool.sharing(arrived(status={"conditions": [{"type": "Ready to train"}]}, names=["in a list"]))
        for _ in range(2)
    )
    assert [id(text) for text in strings(first)] == [id(text) for text in strings(second)]
    assert len(strings(first)) == 6


def test_a_long_string_is_not_kept() -> None:
    pool = StringPool()
    long = {"": "x" * (LONGEST + 1)}
    assert pool.sharing(long) == long
    assert len(pool) == 1
    pool.sharing({"": "x" * LONGEST})
    assert len(pool) == 2


def test_a_tenant_cannot_make_it_grow_and_what_is_common_is_shared_again() -> None:
    pool = StringPool()
    for number in range(3 * LARGEST):
        pool.sharing({str(number): None})
        assert len(pool) <= LARGEST
    first, second = (pool.sharing(arrived(phase="Running now")) for _ in range(2))
    assert first["phase"] is second["phase"]
