"""The end of a log within a limit."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.log_tail import log_tail
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("", 5, ""),
        ("abc\n", 5, "abc"),
        ("abcde", 5, "abcde"),
        ("one\ntwo", 5, "two"),  # not "e\ntwo"
        ("one\ntwo", 3, "two"),  # the limit is between two lines
        ("one\ntwo\nthree", 9, "two\nthree"),
        ("a line that is too long", 10, "...oo long"),
        ("first\na line that is too long", 10, "...oo long"),
        ("x\n\n\ny", 3, "y"),
    ],
)
def test_the_end_in_whole_lines(text: str, limit: int, kept: str) -> None:
    assert log_tail(text, limit) == kept


@given(st.text(alphabet="ab\n "), st.integers(4, 20))
def test_the_tail_is_within_the_limit_and_ends_like_the_log(text: str, limit: int) -> None:
    kept = log_tail(text, limit)
    assert len(kept) <= limit
    assert text.strip().endswith(kept.removeprefix("..."))
    assert bool(kept) is bool(text.strip())
