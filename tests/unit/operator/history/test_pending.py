"""What waits for the database: the newest record of each job, and no more than there is room for."""

from __future__ import annotations

from typing import Any

from support.history import NOW, ended

from dljob_operator.history.pending import MOST_BYTES, MOST_RECORDS, Pending
from dljob_operator.history.record import JobRecord, Place, job_record


def record(name: str, **more: Any) -> JobRecord:
    found = job_record(ended(name, **more), Place(), NOW)
    assert found is not None
    return found


def names(taken: list[tuple[JobRecord, bool]]) -> list[str]:
    return [one.identity.name for one, _ in taken]


def test_the_newest_record_of_a_job_replaces_the_others() -> None:
    pending = Pending()
    assert pending.add(record("a"), exists=True) and pending.add(record("b"), exists=True)
    assert pending.add(record("a", version=2), exists=False)
    assert len(pending) == 2
    taken = pending.take(10)
    assert [(one.identity.name, one.version, exists) for one, exists in taken] == [("a", 2, False), ("b", 1, True)]
    assert (len(pending), pending.take(1)) == (0, [])


def test_what_could_not_be_written_comes_back_unless_it_is_older() -> None:
    pending = Pending()
    for name in ("a", "b", "c"):
        pending.add(record(name), exists=True)
    taken = pending.take(2)
    pending.add(record("a", version=2), exists=True)
    assert pending.give_back(taken) == 0
    assert sorted((one.identity.name, one.version) for one, _ in pending.take(10)) == [("a", 2), ("b", 1), ("c", 1)]


def test_a_job_that_exists_is_left_out_and_a_deleted_one_is_not() -> None:
    pending = Pending(most_records=2)
    assert pending.add(record("a"), exists=True) and pending.add(record("b"), exists=True)
    assert not pending.is_incomplete
    assert pending.add(record("c"), exists=True), "it can be read again"
    assert pending.is_incomplete
    pending.is_incomplete = False
    assert pending.add(record("d"), exists=False)
    assert pending.is_incomplete, "b, the newest that exists, made room"
    assert pending.add(record("e"), exists=False)
    assert not pending.add(record("f"), exists=False), "there is no room for another deleted job"
    assert names(pending.take(10)) == ["d", "e"]


def test_a_job_that_is_left_out_takes_its_older_record_with_it() -> None:
    """It would overwrite what is read again."""
    pending = Pending(most_records=2)
    pending.add(record("a"), exists=True)
    pending.add(record("b"), exists=False)
    pending.add(record("a", version=2), exists=True)
    assert sorted(names(pending.take(10))) == ["a", "b"]


def test_the_bytes_are_bounded_too_and_are_counted_back() -> None:
    pending = Pending(most_bytes=5_000)
    for _ in range(3):
        pending.add(record("a"), exists=False)
        pending.add(record("b"), exists=False)
        assert not pending.add(record("c"), exists=False)
        assert len(pending.take(10)) == 2
    for _ in range(3):
        pending.add(record("a"), exists=True)
        pending.add(record("b"), exists=True)
        assert pending.add(record("d"), exists=False) and pending.add(record("e"), exists=False)
        assert names(pending.take(10)) == ["d", "e"], "each made room"
    full = Pending()
    message = "x" * 1024
    for number in range(MOST_RECORDS + 1):
        made = ended(f"j{number}", state="Failed")
        made["status"]["failure"] = {"message": message}
        found = job_record(made, Place(), NOW)
        assert found is not None
        full.add(found, exists=True)
    assert full.is_incomplete
    assert MOST_BYTES / 5_000 < len(full) < MOST_RECORDS
