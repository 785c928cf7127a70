"""Whether the cache has observed what a run wrote."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dljob_operator.engine.queue import resource_versions
from dljob_operator.engine.queue.resource_versions import ResourceVersionTracker, Written, number

PRESENT: dict[str, Any] = {"leaving": False, "gone": False}
LEAVING: dict[str, Any] = {"leaving": True, "gone": False}
GONE: dict[str, Any] = {"leaving": False, "gone": True}


def has_seen(tracker: ResourceVersionTracker, *writes: Written) -> bool:
    return tracker.wait_for(writes, 0)


@pytest.mark.parametrize(
    ("notes", "write", "expected"),
    [
        ([], ("pod", "5"), False),
        ([], ("pod", "0"), False),
        ([], ("pod", None), False),
        ([("4", PRESENT)], ("pod", "5"), False),
        ([("5", PRESENT)], ("pod", "5"), True),
        ([("10", PRESENT)], ("pod", "9"), True),
        ([("5", PRESENT)], ("pod", None), False),
        ([("5", PRESENT)], ("another", "5"), False),
        ([("5", PRESENT), ("6", LEAVING)], ("pod", None), True),
        ([("5", PRESENT), ("6", LEAVING)], ("pod", "6"), True),
        ([("5", PRESENT), ("6", LEAVING)], ("pod", "7"), False),
        ([("5", PRESENT), ("6", GONE)], ("pod", None), True),
        ([("5", PRESENT), ("6", GONE)], ("pod", "7"), True),
        ([("6", GONE)], ("pod", "7"), True),
        ([("odd", PRESENT)], ("pod", "odd"), True),
        ([("odd", PRESENT)], ("pod", "1"), False),
    ],
)
def test_what_the_cache_has_observed(notes: list[tuple[str, Any]], write: Written, expected: bool) -> None:
    tracker = ResourceVersionTracker()
    for version, state in notes:
        tracker.note("pod", version, **state)
    assert has_seen(tracker, write) is expected


def test_all_writes_are_waited_for() -> None:
    tracker = ResourceVersionTracker()
    tracker.note("a", "5", **PRESENT)
    assert not has_seen(tracker, ("a", "5"), ("b", "6"))
    threading.Thread(target=lambda: tracker.note("b", "6", **PRESENT)).start()
    assert tracker.wait_for([("a", "5"), ("b", "6")], 10)
    assert has_seen(tracker)


def test_of_deleted_objects_the_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_versions, "_GONE_KEPT", 2)
    tracker = ResourceVersionTracker()
    for name in "abc":
        tracker.note(name, "5", **PRESENT)
        tracker.note(name, "6", **GONE)
    assert [has_seen(tracker, (name, None)) for name in "abc"] == [False, True, True]
    assert tracker._versions == {}, "nothing is kept of the other deleted objects"  # noqa: SLF001 - memory that no answer shows


@pytest.mark.parametrize(("version", "expected"), [("12", 12), ("0", 0), ("", 0), ("odd", 0)])
def test_a_version_that_is_no_number_is_the_oldest(version: str, expected: int) -> None:
    assert number(version) == expected
