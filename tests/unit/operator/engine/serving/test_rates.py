"""Limits of rates."""

from __future__ import annotations

from dljob_operator.engine.serving.rates import _MOST_KEYS, Gate, Rate


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_and_then_the_rate() -> None:
    clock = Clock()
    gate = Gate(Rate(2, 4), clock=clock)
    assert [gate.opens("a") for _ in range(6)] == [True] * 4 + [False] * 2
    assert gate.opens("b"), "each address has its own"
    clock.now = 0.4
    assert not gate.opens("a")
    clock.now = 1.0
    assert [gate.opens("a") for _ in range(3)] == [True, True, False]
    clock.now = 1000.0
    assert [gate.opens("a") for _ in range(5)] == [True] * 4 + [False]


def test_all_addresses_together() -> None:
    gate = Gate(Rate(1, 2), lambda address: "", Clock())
    assert [gate.opens(name) for name in "abc"] == [True, True, False]


def test_a_clock_that_stands_still_and_many_addresses() -> None:
    gate = Gate(Rate(1, 1), clock=Clock())
    for number in range(_MOST_KEYS):
        assert gate.opens(str(number))
    assert not gate.opens("0"), "it is remembered"
    assert gate.opens("one more")
    assert not gate.opens("0"), "the longest unused was forgotten instead"
    assert gate.opens("1")
