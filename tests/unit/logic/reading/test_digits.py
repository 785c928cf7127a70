"""Numbers in the labels and annotations of pods."""

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import digits


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("999999999", 999_999_999),
        ("1" * 10, None),
        ("", None),
        (None, None),
        ("-1", None),
        ("1.0", None),
        ("x", None),
    ],
)
def test_only_up_to_nine_decimal_digits_are_a_number(text: str | None, number: int | None) -> None:
    assert digits.number(text) == number
