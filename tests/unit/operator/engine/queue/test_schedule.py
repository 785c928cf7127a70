"""Due times of keys, and threads that wait for them."""

from __future__ import annotations

import threading
import time

import pytest
from support.clock import Clock

from dljob_operator.engine.queue.schedule import Schedule


def due_keys(schedule: Schedule) -> list[str]:
    found = []
    while (key := schedule.pop()) is not None:
        found.append(key)
    return found


def test_keys_are_due_in_the_order_of_their_times() -> None:
    clock = Clock()
    schedule = Schedule(clock)
    with schedule.changed:
        for key, due in (("b", 102.0), ("a", 103.0), ("c", 101.0)):
            schedule.set(key, due)
        assert due_keys(schedule) == []
        clock.now = 102.0
        assert due_keys(schedule) == ["c", "b"]
        assert len(schedule) == 1


def test_only_the_last_time_of_a_key_counts() -> None:
    clock = Clock()
    schedule = Schedule(clock)
    with schedule.changed:
        schedule.set("a", 101.0)
        schedule.set("a", 105.0)
        schedule.set("b", 101.0)
        schedule.discard("b")
        clock.now = 104.0
        assert due_keys(schedule) == []
        assert schedule.due("a") == 105.0
        schedule.set("a", 101.0)
        clock.now = 200.0
        assert due_keys(schedule) == ["a"]
        assert schedule.due("a") == float("inf")


@pytest.mark.parametrize("keys", [1, 100])
def test_times_that_were_replaced_do_not_pile_up(keys: int) -> None:
    clock = Clock()
    schedule = Schedule(clock)
    sizes = []
    with schedule.changed:
        for number in range(10_000):
            schedule.set(f"key-{number % keys}", 200.0 + number)
            sizes.append(len(schedule._heap))  # noqa: SLF001 - memory that no answer shows
        clock.now = 20_000.0
        last = [f"key-{number % keys}" for number in range(10_000 - keys, 10_000)]
        assert due_keys(schedule) == last
    assert max(sizes) <= 2 * keys + 64, "memory is limited"
    assert sizes.count(keys) < 10_000 / (keys + 64) + 2, (
        "to remove outdated times at every change would cost more than they do"
    )


def test_keys_keep_their_order_when_outdated_times_are_removed() -> None:
    clock = Clock()
    schedule = Schedule(clock)
    with schedule.changed:
        for number in range(100):
            schedule.set(f"key-{number}", 1000.0 - number)
        for number in range(1000):
            schedule.set("key-0", 2000.0 + number)
        assert len(schedule._heap) < 1000, "some were removed"  # noqa: SLF001 - memory that no answer shows
        clock.now = 3000.0
        assert due_keys(schedule) == [f"key-{number}" for number in range(99, -1, -1)]


def waiting(schedule: Schedule, timeout: float | None = None) -> tuple[threading.Thread, list[list[str] | None]]:
    found: list[list[str] | None] = []

    def take() -> list[str] | None:
        key = schedule.pop()
        return None if key is None else [key]

    def wait() -> None:
        with schedule.changed:
            found.append(schedule.wait(take, timeout))

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread, found


def test_a_thread_wakes_for_a_key_that_comes_later_and_at_its_time() -> None:
    schedule = Schedule(time.monotonic)
    thread, found = waiting(schedule)
    with schedule.changed:
        schedule.set("later", time.monotonic() + 3600)
        schedule.set("soon", time.monotonic() + 0.02)
    thread.join(10)
    assert found == [["soon"]]


def test_a_thread_waits_until_the_next_time_or_its_timeout_and_no_longer() -> None:
    clock = Clock()
    schedule = Schedule(clock)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock.now += seconds

    schedule.changed.wait = wait  # type: ignore[assignment, method-assign]
    take = lambda: [key] if (key := schedule.pop()) else None  # noqa: E731
    with schedule.changed:
        schedule.set("a", 100.25)
        assert schedule.wait(take, 60.0) == ["a"]
        schedule.set("b", 200.0)
        assert schedule.wait(take, 0.5) == []
    assert waits == [0.25, 0.5]


def test_a_wait_ends_at_its_timeout_and_when_the_schedule_is_closed() -> None:
    schedule = Schedule(time.monotonic)
    thread, found = waiting(schedule, timeout=0.01)
    thread.join(10)
    assert found == [[]]
    thread, found = waiting(schedule)
    with schedule.changed:
        schedule.close()
    thread.join(10)
    assert found == [None]


def test_a_due_time_in_some_millennia_is_waited_for() -> None:
    """Python raises OverflowError for such a wait, and an annotation of a job can request it."""
    schedule = Schedule(time.monotonic)
    ready = threading.Event()

    def take() -> list[str] | None:
        ready.set()
        return None

    found: list[list[str] | None] = []
    with schedule.changed:
        schedule.set("a", time.monotonic() + 10_000_000 * 3600.0)

    def wait() -> None:
        with schedule.changed:
            found.append(schedule.wait(take, None))

    thread = threading.Thread(target=wait)
    thread.start()
    assert ready.wait(10)
    with schedule.changed:
        schedule.close()
    thread.join(10)
    assert found == [None]
