from __future__ import annotations

import time

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


@pytest.mark.parametrize("text", ["1" * 100_000, "1s" + "1" * 100_000, "." + "1" * 100_000, "1." + "1" * 100_000])
def test_a_long_text_is_refused_at_once(text: str) -> None:
    """An annotation may have 256 KiB. Time that grows with the square of the length would stop all threads for an hour."""
    began = time.process_time()
    with pytest.raises(ValueError, match="1h30m") as raised:
        parse_duration(text)
    assert time.process_time() - began < 1
    assert len(str(raised.value)) < 200
