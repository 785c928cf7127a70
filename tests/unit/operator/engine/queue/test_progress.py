"""When a queue counts as stuck, and what the liveness probe then says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter
from support.clock import Clock
from support.fed_informers import fill, informer_of

from dljob_operator.engine.controller import Controller
from dljob_operator.engine.controller_settings import ControllerSettings
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.queue import progress as module
from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.progress import Stall
from dljob_operator.engine.queue.queue import WorkQueue
from dljob_operator.watches import GVK, Watch

LIMIT = 600.0
ECHO = GVK("example.com", "v1", "EchoJob")


class Worker:
    """Uses a queue from a thread of its own, as each worker does."""

    def __init__(self, queue: WorkQueue) -> None:
        self._queue = queue
        self._orders: list[tuple[Callable[[], Any], threading.Event]] = []
        self._given = threading.Semaphore(0)
        self._results: list[Any] = []
        threading.Thread(target=self._obey, daemon=True).start()

    def _obey(self) -> None:
        while True:
            self._given.acquire()
            order, ended = self._orders.pop()
            self._results.append(order())
            ended.set()

    def do(self, order: Callable[[], Any]) -> Any:
        ended = threading.Event()
        self._orders.append((order, ended))
        self._given.release()
        assert ended.wait(10)
        return self._results[-1]

    def take(self, most: int = 1) -> list[str]:
        taken: list[str] = self.do(lambda: self._queue.get(lambda _: most, timeout=0))
        return taken

    def done(self, key: str) -> None:
        self.do(lambda: self._queue.done(key, ok=True))


class Queue:
    def __init__(self, workers: int = 2) -> None:
        self.clock = Clock()
        self.queue = WorkQueue(self.clock)
        self.workers = [Worker(self.queue) for _ in range(workers)]

    def add(self, *keys: str) -> None:
        for key in keys:
            self.queue.add(key, Flow("g", "default"), urgent=True)

    def after(self, seconds: float) -> Stall | None:
        self.clock.now += seconds
        return self.queue.stall(LIMIT)


@pytest.fixture
def queue() -> Queue:
    return Queue()


def test_an_idle_queue_is_not_stuck(queue: Queue) -> None:
    assert queue.workers[0].take() == []
    assert queue.after(100_000) is None
    queue.add("a")
    assert queue.after(LIMIT) is None


def test_a_run_without_an_end_is_stuck_and_named(queue: Queue) -> None:
    queue.add("a")
    queue.workers[0].take()
    assert queue.after(LIMIT) is None
    assert queue.after(1) == Stall("a", LIMIT + 1, running=True)


def test_a_batch_that_returns_jobs_makes_progress(queue: Queue) -> None:
    queue.add("a", "b", "c")
    assert queue.workers[0].take(3) == ["a", "b", "c"]
    assert queue.queue.stall(-1) == Stall("a", 0, running=True), "the first of them that was not returned"
    for key in ("a", "b"):
        assert queue.after(LIMIT) is None
        queue.workers[0].done(key)
    assert queue.after(LIMIT) is None
    assert queue.after(1) == Stall("c", LIMIT + 1, running=True)


def test_a_worker_that_hangs_is_found_although_another_works(queue: Queue) -> None:
    queue.add("stuck")
    queue.workers[0].take()
    for number in range(7):
        queue.add(f"j{number}")
        assert queue.workers[1].take() == [f"j{number}"]
        found = queue.after(100)
        queue.workers[1].done(f"j{number}")
    assert found == Stall("stuck", 700, running=True)


def test_a_worker_that_hangs_after_its_last_job_is_found(queue: Queue) -> None:
    """Its job may be deleted by then, or run again in another worker."""
    queue.add("a")
    queue.workers[0].take()
    queue.workers[0].done("a")
    queue.queue.discard("a")
    assert queue.after(LIMIT + 1) == Stall("a", LIMIT + 1, running=True)
    queue.workers[0].take()
    assert queue.after(0) is None


def test_a_second_return_of_a_job_makes_an_idle_worker_no_busy_one(queue: Queue) -> None:
    queue.add("a")
    queue.workers[0].take()
    queue.workers[0].done("a")
    queue.workers[0].take()
    queue.workers[0].done("a")
    assert queue.after(LIMIT + 1) is None


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_a_ready_job_that_nobody_takes_is_stuck(queue: Queue, first: str, second: str) -> None:
    queue.add(first)
    queue.clock.now += 1
    queue.add(second)
    assert queue.after(LIMIT - 1) is None
    assert queue.after(1) == Stall(first, LIMIT + 1, running=False)


def test_a_job_that_nobody_takes_at_its_time_is_stuck(queue: Queue) -> None:
    queue.queue.add("a", Flow("g", "default"))
    assert queue.after(1) is None
    assert queue.after(LIMIT + 1) == Stall("a", LIMIT + 1, running=False)


def test_jobs_that_wait_behind_others_are_not_stuck(queue: Queue) -> None:
    """A full queue is a matter of capacity: a restart would only lose the runs in progress."""
    queue.add(*(f"j{number}" for number in range(20)))
    for number in range(10):
        assert queue.workers[0].take() == [f"j{number}"]
        assert queue.after(LIMIT) is None
        queue.workers[0].done(f"j{number}")


def test_a_delayed_job_is_not_stuck(queue: Queue) -> None:
    queue.add("a")
    queue.workers[0].take()
    queue.workers[0].do(lambda: queue.queue.done("a", ok=True, again_after=36_000))
    queue.workers[0].take()
    assert queue.after(30_000) is None


# The controller


class Runner:
    def __init__(self) -> None:
        self.changes = ChangeCounter.create()

    def close(self) -> None: ...


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Controller:
    """Not started; anything that waits is stuck at once."""
    monkeypatch.setattr(module, "MARGIN", -300.0)
    return Controller([Watch(ECHO)], KubeApi.__new__(KubeApi), Runner(), ControllerSettings(run_timeout=300.0))  # type: ignore[arg-type]


def feed(controller: Controller) -> None:
    metadata = {"name": "digits", "namespace": "team", "uid": "1", "resourceVersion": "1", "generation": 1}
    obj = {"apiVersion": ECHO.api_version, "kind": ECHO.kind, "metadata": metadata}
    informer_of(controller.informers, str(ECHO)).handle({"type": "ADDED", "object": obj})


def test_the_job_that_hangs_is_named(controller: Controller) -> None:
    feed(controller)
    fill(controller.informers)
    assert "EchoJob team/digits has waited for 0 s, and no worker takes any job" in controller.problem()
    assert controller.queue.get(lambda _: 1, timeout=0) == ["1"]
    assert "the reconcile of example.com/v1 EchoJob team/digits has made no progress for 0 s" in controller.problem()


def test_workers_that_wait_for_the_first_lists_are_not_stuck(controller: Controller) -> None:
    """The API server may not answer, and a restart would not help."""
    feed(controller)
    assert controller.problem() == ""
    fill(controller.informers)
    assert controller.problem() != ""


def test_the_limit_follows_the_time_limit_of_a_run(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(controller.queue, "stall", lambda limit: asked.append(limit))
    monkeypatch.setattr(module, "MARGIN", 300.0)
    fill(controller.informers)
    assert controller.problem() == ""
    assert asked == [600.0]


def test_readiness_names_the_kind_that_was_not_listed(controller: Controller) -> None:
    assert controller.not_ready() == "the first list of example.com/v1 EchoJob is not complete"
    fill(controller.informers)
    assert controller.not_ready() == ""
