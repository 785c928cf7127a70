"""When a report is written to the status, and with what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.progress import with_progress

NOW = datetime(2026, 11, 30, 10, 0, 0, tzinfo=UTC)


def report(percent: int, seconds_ago: float = 0) -> dict[str, Any]:
    at = (NOW - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"progressPercentage": percent, "lastUpdatedTime": at}


@pytest.mark.parametrize(
    ("old", "is_written"),
    [
        (None, True),
        (report(10, 60), True),
        (report(10, 55), True),
        (report(10, 54), False),
        (report(10, -3600), True),  # of a clock that was wrong
        ({"lastUpdatedTime": "soon"}, True),
        ("soon", True),
        (report(20), False),
    ],
)
def test_for_progress_alone_a_status_is_written_once_a_minute(old: Any, *, is_written: bool) -> None:
    before = {"state": "Running", **({} if old is None else {"trainerStatus": old})}
    found = with_progress(before, None, {"trainerStatus": report(20)}, NOW)
    assert found == ({"state": "Running", "trainerStatus": report(20)} if is_written else None)


def test_a_status_that_is_written_anyway_has_the_last_report() -> None:
    before = {"state": "Running", "trainerStatus": report(90, 1)}
    new = {**before, "state": "Succeeded"}
    reported = {"trainerStatus": report(100), "rankStatus": {"reporting": 2}}
    assert with_progress(before, new, reported, NOW) == {"state": "Succeeded", **reported}
    assert before["trainerStatus"] == report(90, 1)


@pytest.mark.parametrize("new", [None, {"state": "Failed"}])
def test_without_a_report_nothing_changes(new: dict[str, Any] | None) -> None:
    assert with_progress({"state": "Running"}, new, {}, NOW) is new
    assert with_progress({"trainerStatus": report(1)}, new, {"trainerStatus": None}, NOW) is new
