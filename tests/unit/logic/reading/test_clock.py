"""Conversion of timestamps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import clock

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_stamp_is_utc_in_whole_seconds() -> None:
    east = timezone(timedelta(hours=2))
    assert clock.stamp(MOMENT.replace(microsecond=999).astimezone(east)) == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize("text", ["2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00", "2026-01-02T03:04:05"])
def test_parse(text: str) -> None:
    assert clock.parse(text) == MOMENT


def test_parse_fractions() -> None:
    assert clock.parse("2026-01-02T03:04:05.250000Z") == MOMENT + timedelta(milliseconds=250)


OUT_OF_UTC = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")


@pytest.mark.parametrize(
    "text", [None, "", "soon", "2026-13-01T00:00:00Z", 1767323045, 0, 1.5, True, [], {"a": "b"}, *OUT_OF_UTC]
)
def test_no_time(text: object) -> None:
    assert clock.parse(text) is None
    assert clock.seconds_since(text, MOMENT) is None


def test_seconds_since() -> None:
    assert clock.seconds_since("2026-01-02T03:04:00Z", MOMENT) == 5
