"""The threads of a controller, and how they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest
from support.polling import until

from dljob_operator.engine import workers
from dljob_operator.engine.cache.informer_set import InformerSet
from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.queue import WorkQueue
from dljob_operator.engine.workers import Work, Workers


class Informers:
    """Records its calls; the cache is filled when a test says so, or when the stop begins."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.filled = threading.Event()

    def start(self) -> None:
        self.calls.append("start")

    def wait_filled(self) -> bool:
        return self.filled.wait(10)

    def begin_stop(self) -> None:
        self.calls.append("begin stop")
        self.filled.set()

    def stop(self) -> None:
        self.calls.append("stop")

    def join(self) -> None:
        self.calls.append("join")


class Pool:
    """Workers whose runs end when a test or the runner's end lets them."""

    def __init__(self, count: int = 2, handle: Callable[[Pool, list[str]], None] | None = None) -> None:
        self.informers = Informers()
        self.queue = WorkQueue()
        self.began = threading.Semaphore(0)
        self.release = threading.Event()
        self.abandoned: list[str] = []
        take = lambda: self.queue.get(lambda _: 1)  # noqa: E731
        run = partial(handle, self) if handle else self.handle
        work = Work(take, run, self.abandoned.append, self.queue.close, threads=count)
        self.workers = Workers([work], cast(InformerSet, self.informers), self)

    def handle(self, keys: list[str]) -> None:
        self.began.release()
        if keys == ["broken"]:
            raise RuntimeError("a bug")
        assert self.release.wait(10)

    def close(self) -> None:
        self.informers.calls.append("runs killed")
        self.release.set()


def test_no_work_starts_before_the_cache_is_filled() -> None:
    pool = Pool()
    pool.queue.add("a", Flow("g", "default"), urgent=True)
    pool.workers.start()
    assert not pool.began.acquire(timeout=0.05)
    pool.informers.filled.set()
    assert pool.began.acquire(timeout=10)
    pool.workers.stop(0)


def test_an_error_costs_one_run_and_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    pool = Pool(count=1)
    pool.informers.filled.set()
    pool.queue.add("broken", Flow("g", "default"), urgent=True)
    pool.queue.add("next", Flow("g", "default"), urgent=True)
    pool.workers.start()
    assert pool.began.acquire(timeout=10)
    assert pool.began.acquire(timeout=10)
    assert pool.abandoned == ["broken"]
    pool.workers.stop(0)
    (record, *_) = caplog.records
    assert record.getMessage() == "reconcile failed with an internal error"
    assert record.exc_info
    assert str(record.exc_info[1]) == "a bug"


def test_runs_in_progress_get_their_time_and_are_killed_after_it(caplog: pytest.LogCaptureFixture) -> None:
    pool = Pool(count=1)
    pool.informers.filled.set()
    pool.queue.add("a", Flow("g", "default"), urgent=True)
    pool.workers.start()
    assert pool.began.acquire(timeout=10)
    pool.workers.stop(0.05)
    assert pool.informers.calls == ["start", "begin stop", "runs killed", "stop", "join"]
    (record,) = caplog.records
    assert record.getMessage() == "ending runs that did not end in time"
    assert record.__dict__["dljob_fields"] == {"grace_seconds": 0.05}


def test_a_stop_waits_for_the_end_of_runs_that_it_has_killed() -> None:
    def handle(pool: Pool, keys: list[str]) -> None:
        pool.began.release()
        assert pool.release.wait(10)
        assert not threading.Event().wait(0.05)
        pool.informers.calls.append("run ended")

    pool = Pool(count=1, handle=handle)
    pool.informers.filled.set()
    pool.queue.add("a", Flow("g", "default"), urgent=True)
    pool.workers.start()
    assert pool.began.acquire(timeout=10)
    pool.workers.stop(0)
    assert pool.informers.calls.index("run ended") < pool.informers.calls.index("join")


def test_all_runs_share_the_time_that_a_stop_leaves_them() -> None:
    pool = Pool(count=8)
    pool.informers.filled.set()
    for number in range(8):
        pool.queue.add(str(number), Flow("g", "default"), urgent=True)
    pool.workers.start()
    for _ in range(8):
        assert pool.began.acquire(timeout=10)
    began = time.monotonic()
    pool.workers.stop(0)
    assert time.monotonic() - began < 5


def test_a_run_that_ends_in_time_is_not_killed(caplog: pytest.LogCaptureFixture) -> None:
    killed: list[bool] = []

    def handle(pool: Pool, keys: list[str]) -> None:
        pool.began.release()
        killed.append(pool.release.wait(0.05))

    pool = Pool(count=1, handle=handle)
    pool.informers.filled.set()
    pool.queue.add("a", Flow("g", "default"), urgent=True)
    pool.workers.start()
    assert pool.began.acquire(timeout=10)
    pool.workers.stop(10)
    assert killed == [False]
    assert caplog.records == []


def test_a_stop_ends_threads_that_wait_for_the_first_lists() -> None:
    pool = Pool()
    pool.workers.start()
    pool.workers.stop(10)
    assert pool.informers.calls == ["start", "begin stop", "runs killed", "stop", "join"]


def test_an_error_of_the_queue_ends_no_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A due time of 10,000,000 h made the queue raise OverflowError, which ended all threads for ever."""
    monkeypatch.setattr(workers, "RETRY_DELAY", 0.01)
    pool = Pool(count=1)
    pool.informers.filled.set()
    errors = iter([OverflowError("timestamp too large")])
    take = pool.queue.get

    def get(*given: object) -> list[str] | None:
        for error in errors:
            raise error
        return take(*given)  # type: ignore[arg-type]

    pool.queue.get = get  # type: ignore[method-assign,assignment]
    pool.release.set()
    pool.workers.start()
    pool.queue.add("1", Flow("g", "default"))
    assert pool.began.acquire(timeout=10)
    pool.workers.stop(1)
    assert [record.getMessage() for record in caplog.records] == ["the queue failed with an internal error"]


def test_a_thread_that_has_ended_is_a_problem_and_one_that_was_stopped_is_none() -> None:
    pool = Pool(count=1)
    assert pool.workers.problem() == "", "not started yet"
    pool.informers.filled.set()
    pool.release.set()
    pool.queue.close()  # as if a bug ended the thread: its queue returns None
    pool.workers.start()
    until(pool.workers.problem)
    assert pool.workers.problem() == "the thread worker 0 has ended"
    pool.workers.stop(1)
    assert pool.workers.problem() == ""


def test_a_job_that_cannot_be_returned_costs_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    pool = Pool(count=1)
    pool.informers.filled.set()
    pool.release.set()
    pool.workers = Workers(
        [Work(lambda: pool.queue.get(lambda _: 1), pool.handle, Refusing().append, pool.queue.close)],
        cast(InformerSet, pool.informers),
        pool,
    )
    pool.workers.start()
    pool.queue.add("broken", Flow("g", "default"))
    assert pool.began.acquire(timeout=10)
    pool.queue.add("1", Flow("g", "default"))
    assert pool.began.acquire(timeout=10)
    assert pool.workers.problem() == ""
    pool.workers.stop(1)
    _, record = caplog.records
    assert record.getMessage() == "a job could not be returned to the queue"
    assert record.__dict__["dljob_fields"] == {"uid": "broken"}


class Refusing:
    def append(self, key: str) -> None:
        raise RuntimeError("another bug")
