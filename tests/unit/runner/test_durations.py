from __future__ import annotations

import pytest

from dljob_operator.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("500ms", 0.5),
        ("2m0.5s", 120.5),
        (".5s", 0.5),
        ("0", 0.0),
        ("0s", 0.0),
        ("+10us", 1e-5),
        ("10h0m0s", 36000.0),
    ],
)
def test_a_go_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "5 s", "1d", "s", "1h30", "-5s", "+", "1h junk", "1h!!30m", "1e3s", 30, None, True]
)
def test_anything_else_is_refused_with_the_notation(text: object) -> None:
    with pytest.raises(ValueError, match="1h30m"):
        parse_duration(text)
