"""The compact format of the completed replicas."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import completed
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("indexes", "text"),
    [({0}, "0"), ({0, 1, 2}, "0-2"), ({0, 1, 2, 5}, "0-2,5"), ({7, 9}, "7,9"), ({0, 1, 5, 6}, "0-1,5-6")],
)
def test_ranges(indexes: set[int], text: str) -> None:
    assert completed.write({"worker": indexes}) == {"worker": text}
    assert completed.read({"worker": text}) == {"worker": indexes}


def test_types_without_one_are_left_out() -> None:
    assert completed.write({"worker": set(), "server": {1}}) == {"server": "1"}


@pytest.mark.parametrize("held", [None, "0-2", [], 3])
def test_other_values_than_a_map_are_ignored(held: object) -> None:
    assert completed.read(held) == {}


@pytest.mark.parametrize("text", ["", "x", "-1", "1-", "5-3", "1..3", "0-99999999999999999999", None, {}])
def test_malformed_ranges_are_ignored(text: object) -> None:
    assert completed.read({"worker": text}) == {"worker": set()}


def test_valid_ranges_beside_malformed_ones_are_read() -> None:
    assert completed.read({"worker": "0,x,3-4"}) == {"worker": {0, 3, 4}}


@given(st.dictionaries(st.text(min_size=1), st.sets(st.integers(0, 5000), min_size=1)))
def test_round_trip(held: dict[str, set[int]]) -> None:
    assert completed.read(completed.write(held)) == held


@given(st.text(alphabet="0123456789-,x "))
def test_any_text_is_read(text: str) -> None:
    assert all(0 <= i < 1_000_000 for i in completed.read({"worker": text})["worker"])
