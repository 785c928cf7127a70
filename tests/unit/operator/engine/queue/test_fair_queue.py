"""Namespaces take turns; within a namespace the first key comes first."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dljob_operator.engine.queue.fair_queue import FairQueue, Flow


def _filled(*keys: str) -> FairQueue:
    """Keys such as "a1": namespace a, and of the target that the digit's parity names."""
    queue = FairQueue()
    for key in keys:
        queue.add(key, Flow("odd" if int(key[1:]) % 2 else "even", key[0]))
    return queue


def _drained(queue: FairQueue) -> list[str]:
    return [queue.pop()[0] for _ in range(len(queue))]


def test_namespaces_take_turns() -> None:
    assert _drained(_filled("a1", "a2", "a3", "b1", "c1", "c2")) == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_a_key_is_queued_once() -> None:
    assert _drained(_filled("a1", "a1")) == ["a1"]


def test_an_empty_queue_has_no_key() -> None:
    with pytest.raises(KeyError):
        FairQueue().pop()


def test_a_namespace_can_be_avoided() -> None:
    queue = _filled("a1", "b1", "b2", "c1")
    assert list(queue.namespaces) == ["a", "b", "c"]
    assert queue.pop({"a", "c"})[0] == "b1"
    assert queue.has_namespace_beside({"a", "c"})
    assert not queue.has_namespace_beside({"a", "b", "c"})
    with pytest.raises(KeyError):
        queue.pop({"a", "b", "c"})
    assert _drained(queue) == ["a1", "c1", "b2"]


def test_a_discarded_key_is_not_taken() -> None:
    queue = _filled("a1", "b1", "b2")
    assert queue.discard("b1")
    assert not queue.discard("b1")
    assert _drained(queue) == ["a1", "b2"]


def test_a_batch_has_one_target_and_the_namespaces_take_turns_in_it() -> None:
    queue = _filled("a1", "a2", "a3", "a5", "b1", "b3", "c2")
    assert queue.pop() == ("a1", Flow("odd", "a"))
    assert queue.count("odd") == 4
    assert queue.pop_more("odd", 3, lambda key: True) == ["b1", "a3", "b3"]
    assert _drained(queue) == ["c2", "a2", "a5"]


def test_a_namespace_of_a_batch_has_had_its_turn() -> None:
    queue = _filled("b1", "c2", "a1")
    assert queue.pop_more("odd", 1, lambda key: True) == ["b1"]
    for key in ("b3", "a3"):
        queue.add(key, Flow("odd", key[0]))
    assert queue.pop_more("odd", 1, lambda key: True) == ["a1"]
    assert _drained(queue) == ["c2", "b3", "a3"]


def test_a_batch_leaves_out_what_is_not_permitted() -> None:
    queue = _filled("a1", "a3", "a5")
    assert queue.pop_more("odd", 3, lambda key: key != "a3") == ["a1", "a5"]
    assert len(queue) == 1


def test_what_shares_no_batch_has_its_turn_between_the_batches() -> None:
    """Five keys of each namespace in a batch: otherwise that of the first one would always be the next."""
    queue = _filled(*(f"{namespace}{number}" for number in range(1, 99, 2) for namespace in "abcde"))
    assert queue.pop()[0] == "a1"
    assert len(queue.pop_more("odd", 24, lambda key: key != "b1")) == 24
    assert queue.pop()[0] == "b1"


def test_all_keys_of_a_namespace_are_removed() -> None:
    queue = _filled("a1", "b1", "a2", "a3")
    assert list(queue.remove("a").items()) == [
        ("a1", Flow("odd", "a")),
        ("a2", Flow("even", "a")),
        ("a3", Flow("odd", "a")),
    ]
    assert queue.remove("a") == {}
    assert queue.count("odd") == 1
    assert _drained(queue) == ["b1"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), unique=True))
def test_no_key_waits_for_more_than_one_of_each_other_namespace(pairs: list[tuple[str, int]]) -> None:
    order = _drained(_filled(*(f"{namespace}{number}" for namespace, number in pairs)))
    for namespace in "abc":
        own = [at for at, key in enumerate(order) if key[0] == namespace]
        assert all(after - before <= 3 for before, after in itertools.pairwise(own))
