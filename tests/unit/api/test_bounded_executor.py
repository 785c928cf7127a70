"""The bounded executor: several jobs share a few threads, and a large job does not delay the others for long."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor

WIDTH = 3
LONG = 20.0
"""Timeout in seconds for something that should happen immediately."""


@pytest.fixture
def executor() -> Iterator[BoundedExecutor]:
    made = BoundedExecutor(WIDTH)
    yield made
    made.close()


def test_all_items_run_with_full_concurrency(executor: BoundedExecutor) -> None:
    meeting = threading.Barrier(WIDTH, timeout=LONG)
    done = []

    def do(item: int) -> None:
        meeting.wait()
        done.append(item)

    executor.map(range(2 * WIDTH), do)
    assert sorted(done) == list(range(2 * WIDTH))


def test_never_more_at_a_time(executor: BoundedExecutor) -> None:
    lock = threading.Lock()
    under_way, most = 0, 0

    def do(item: int) -> None:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        threading.Event().wait(0.002)
        with lock:
            under_way -= 1

    callers = [threading.Thread(target=executor.map, args=(range(10), do)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(LONG)
    assert most == WIDTH


def test_no_more_at_a_time_than_the_caller_permits(executor: BoundedExecutor) -> None:
    under_way: list[int] = []
    most = []

    def do(item: int) -> None:
        under_way.append(item)
        most.append(len(under_way))
        threading.Event().wait(0.002)
        under_way.remove(item)

    executor.map(range(20), do, lambda: executor.window.width)
    assert max(most) == 1
    executor.window.measured(0.01)  # a second write at once is permitted
    most.clear()
    executor.map(range(20), do, lambda: executor.window.width)
    assert max(most) == 2


def test_the_caller_may_permit_fewer_later(executor: BoundedExecutor) -> None:
    under_way: list[int] = []
    most: dict[int, int] = {}

    def do(item: int) -> None:
        under_way.append(item)
        most[item] = len(under_way)
        threading.Event().wait(0.002)
        under_way.remove(item)

    executor.map(range(40), do, lambda: 1 if len(most) >= 10 else 2 * WIDTH)
    assert max(most.values()) == WIDTH
    assert {most[item] for item in range(10 + 3 * WIDTH, 40)} == {1}


def test_the_window_may_open_while_the_items_are_in_progress(executor: BoundedExecutor) -> None:
    meeting = threading.Barrier(WIDTH, timeout=LONG)

    def do(item: int) -> None:
        executor.window.measured(0.01)
        if item >= 12 * WIDTH:
            meeting.wait()

    executor.map(range(15 * WIDTH), do, lambda: executor.window.width)


def test_a_single_item_runs_in_the_callers_thread(executor: BoundedExecutor) -> None:
    names: list[str] = []
    executor.map(["only"], lambda item: names.append(threading.current_thread().name))
    assert names == [threading.current_thread().name]


def test_items_start_in_their_order() -> None:
    one_by_one = BoundedExecutor(1)
    started: list[int] = []
    one_by_one.map(range(20), started.append)
    one_by_one.close()
    assert started == list(range(20))


def test_a_caller_queues_at_most_twice_as_many_items_as_there_are_threads(executor: BoundedExecutor) -> None:
    done: list[int] = []
    unfinished: list[int] = []

    class Counted(list[int]):
        def __iter__(self) -> Iterator[int]:
            for place, item in enumerate(super().__iter__()):
                unfinished.append(place - len(done))
                yield item

    def do(item: int) -> None:
        threading.Event().wait(0.002)
        done.append(item)

    executor.map(Counted(range(20 * WIDTH)), do)
    assert max(unfinished) <= 2 * WIDTH


class Handed(list[int]):
    """A sequence that signals when its first ``count`` items have been taken."""

    def __init__(self, items: Iterable[int], count: int) -> None:
        super().__init__(items)
        self.over = threading.Event()
        self._count = count

    def __iter__(self) -> Iterator[int]:
        for place, item in enumerate(super().__iter__()):
            if place == self._count:
                self.over.set()
            yield item
        self.over.set()


def test_a_caller_with_many_items_does_not_delay_one_with_few(executor: BoundedExecutor) -> None:
    let_go = threading.Semaphore(0)
    started: list[int] = []

    def held_up(item: int) -> None:
        started.append(item)
        assert let_go.acquire(timeout=LONG)

    of_many, of_few = Handed(range(1000), 2 * WIDTH), Handed(range(2), 2)
    many = threading.Thread(target=executor.map, args=(of_many, held_up))
    many.start()
    assert of_many.over.wait(LONG)
    few = threading.Thread(target=executor.map, args=(of_few, lambda item: None))
    few.start()
    assert of_few.over.wait(LONG)
    for _ in range(4 * WIDTH):  # those in progress, those queued before it, and some more
        let_go.release()
    few.join(LONG)
    waited_for = len(started)
    for _ in range(1000):
        let_go.release()
    many.join(LONG)
    assert waited_for <= 5 * WIDTH
    assert sorted(started) == list(range(1000))


def test_an_exception_is_raised_after_the_others_have_finished(executor: BoundedExecutor) -> None:
    done = []

    def do(item: int) -> None:
        if item == 1:
            raise ValueError("the second")
        threading.Event().wait(0.01)
        done.append(item)

    with pytest.raises(ValueError, match="the second"):
        executor.map(range(6), do)
    assert sorted(done) == [0, 2, 3, 4, 5]
