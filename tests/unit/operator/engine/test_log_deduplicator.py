"""A repeated message is new only after it was evicted."""

from __future__ import annotations

from dljob_operator.engine.log_deduplicator import LogDeduplicator


def test_only_the_first_message_is_new() -> None:
    once = LogDeduplicator()
    assert [once.is_new(x) for x in ("a", "a", "b", "a")] == [True, False, True, False]


def test_the_oldest_message_is_evicted() -> None:
    once = LogDeduplicator(remembered=2)
    assert once.is_new("a")
    assert once.is_new("b")
    assert not once.is_new("a")  # and so b is the oldest now
    assert once.is_new("c")
    assert once.is_new("b")
    assert not once.is_new("c")
