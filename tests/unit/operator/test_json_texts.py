"""A list of objects as JSON texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dljob_operator.json_texts import JsonTexts, text_of

_OBJECTS = st.lists(st.dictionaries(st.text(), st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text()))))


@given(_OBJECTS, _OBJECTS)
def test_it_is_a_list_of_the_objects(first: list[Any], second: list[Any]) -> None:
    texts = JsonTexts.joined(JsonTexts(map(text_of, first)), second)
    assert texts == [*first, *second]
    assert list(texts) == [*first, *second]
    assert len(texts) == len(first) + len(second)
    assert texts[1:] == [*first, *second][1:]
    assert [json.loads(text) for text in texts.texts] == [*first, *second]


def test_one_object() -> None:
    texts = JsonTexts(['{"a":1}', '{"a":2}'])
    assert (texts[0], texts[-1]) == ({"a": 1}, {"a": 2})
    with pytest.raises(IndexError):
        texts[2]


def test_it_differs_from_other_objects_and_from_what_is_no_list() -> None:
    texts = JsonTexts(['{"a":1}'])
    assert texts != [{"a": 2}]
    assert texts != [{"a": 1}, {"a": 1}]
    assert texts != {"a": 1}
    assert repr(texts) == """JsonTexts(['{"a":1}'])"""


def test_each_reader_gets_an_object_of_its_own() -> None:
    texts = JsonTexts(['{"a":1}'])
    texts[0]["a"] = 2
    assert texts == [{"a": 1}]
