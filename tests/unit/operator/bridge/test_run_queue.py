"""Which runs of long-lived workers come next, and which share a batch."""

from __future__ import annotations

import threading

import pytest
from support.clock import Clock
from support.polling import until

from dljob_operator.ansible_operator_bridge.run_queue import RunQueue, Turn
from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.progress import Stall
from dljob_operator.engine.queue.ready_lines import LONG, Line

G = Flow("g", "default")
H = Flow("h", "default")
CHANGED, OWNED, CONTINUING = Turn(Line.CHANGED), Turn(Line.OWNED), Turn(Line.CONTINUING, may_share=False)


@pytest.fixture
def runs() -> RunQueue[str]:
    return RunQueue(threads=2)


def get(runs: RunQueue[str], most: int = 25) -> list[str] | None:
    return runs.get(lambda target: most)


def test_runs_of_one_kind_that_wait_share_a_batch(runs: RunQueue[str]) -> None:
    for key, flow in (("a", G), ("b", H), ("c", G)):
        assert runs.add(key, flow, CHANGED, f"run of {key}")
    assert get(runs) == ["a", "c"]
    assert (runs.requests("a"), runs.requests("c")) == (["run of a"], ["run of c"])
    assert get(runs) == ["b"]


def test_a_batch_has_a_limit(runs: RunQueue[str]) -> None:
    for number in range(5):
        runs.add(str(number), G, CHANGED, "")
    assert get(runs, 3) == ["0", "1", "2"]


def test_runs_are_divided_among_idle_threads(runs: RunQueue[str]) -> None:
    runs.takers = 1  # another thread waits
    for number in range(4):
        runs.add(str(number), G, CHANGED, "")
    assert get(runs) == ["0", "1"]


def test_changed_jobs_come_first_and_namespaces_take_turns(runs: RunQueue[str]) -> None:
    for key, flow, turn in (
        ("large", G, CONTINUING),
        ("owned", G, OWNED),
        ("a-1", Flow("g", "a"), CHANGED),
        ("a-2", Flow("g", "a"), CHANGED),
        ("b-1", Flow("g", "b"), CHANGED),
    ):
        runs.add(key, flow, turn, "")
    # every other take is of a namespace without changed jobs
    assert [get(runs, 1) for _ in range(5)] == [["a-1"], ["owned"], ["b-1"], ["a-2"], ["large"]]


def test_large_jobs_leave_a_thread_to_others(runs: RunQueue[str]) -> None:
    runs.add("large", G, CONTINUING, "")
    runs.add("larger", G, CONTINUING, "")
    assert get(runs) == ["large"]
    taken: list[list[str] | None] = []
    thread = threading.Thread(target=lambda: taken.append(get(runs)))
    thread.start()
    until(lambda: runs.takers == 1)
    assert taken == []
    runs.add("small", G, OWNED, "")
    thread.join(10)
    assert taken == [["small"]]
    assert runs.continuing(["small", "large"]) == ["large"]
    runs.done("large")
    assert get(runs) == ["larger"]


def test_a_run_alone_shares_no_batch(runs: RunQueue[str]) -> None:
    runs.add("a", G, CHANGED, "")
    runs.add("alone", G, Turn(Line.CHANGED, may_share=False), "")
    runs.add("b", G, CHANGED, "")
    assert [get(runs), get(runs)] == [["a", "b"], ["alone"]]


def test_requests_for_one_job_that_wait_have_one_run(runs: RunQueue[str]) -> None:
    runs.add("a", G, CHANGED, "killed")
    runs.add("a", G, CHANGED, "again")
    assert get(runs) == ["a"]
    assert runs.requests("a") == ["killed", "again"]


def test_a_job_that_a_user_changes_while_it_waits_moves_up(runs: RunQueue[str]) -> None:
    for key in ("a", "b", "c"):
        runs.add(key, G, OWNED, "its pods")
    runs.add("c", G, CHANGED, "its user")
    runs.add("b", G, Turn(Line.OWNED, may_share=False), "its pods again")
    assert [get(runs) for _ in range(3)] == [["c"], ["a"], ["b"]]
    assert runs.requests("c") == ["its pods", "its user"]


def test_a_job_has_one_run_at_a_time(runs: RunQueue[str]) -> None:
    runs.add("a", G, CHANGED, "killed")
    assert get(runs) == ["a"]
    runs.add("a", G, CHANGED, "again")
    runs.add("b", G, CHANGED, "")
    assert get(runs) == ["b"]
    assert runs.requests("a") == ["killed"]
    runs.done("a")
    assert get(runs) == ["a"]
    assert runs.requests("a") == ["again"]


def test_only_the_thread_of_a_run_ends_it(runs: RunQueue[str]) -> None:
    runs.add("a", G, CHANGED, "first")
    get(runs)
    runs.add("a", G, CHANGED, "second")

    def other() -> None:
        assert runs.requests("a") == []
        runs.done("a")

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(10)
    assert runs.requests("a") == ["first"]


def test_a_run_that_did_not_begin_waits_in_its_line(runs: RunQueue[str]) -> None:
    runs.add("a", G, CHANGED, "first")
    assert get(runs) == ["a"]
    runs.add("a", G, OWNED, "second")
    runs.add("b", G, OWNED, "")
    assert runs.postponed("a")
    assert get(runs) == ["a"]
    assert runs.requests("a") == ["first", "second"]
    runs.done("a")
    assert get(runs) == ["b"]
    assert not runs.postponed("a")
    runs.close()
    assert not runs.postponed("b"), "its requests are answered now"
    assert runs.requests("b") == [""]


@pytest.mark.parametrize(
    ("first", "second", "other"), [(OWNED, CHANGED, OWNED), (CHANGED, Turn(Line.OWNED, may_share=False), CHANGED)]
)
def test_a_postponed_run_has_the_better_line_of_its_requests_and_may_have_to_be_alone(
    runs: RunQueue[str], first: Turn, second: Turn, other: Turn
) -> None:
    runs.add("a", G, first, "")
    assert get(runs) == ["a"]
    runs.add("a", G, second, "")
    assert runs.postponed("a")
    runs.add("b", G, other, "")
    assert get(runs) == ["a"]


def test_runs_of_a_slow_namespace_leave_a_thread_to_others(runs: RunQueue[str]) -> None:
    slow, other = Flow("g", "slow"), Flow("g", "other")
    for key in ("a", "b", "c"):
        runs.add(key, slow, CHANGED, "")
    assert get(runs, 1) == ["a"]
    runs.took("slow", LONG)
    runs.done("a")
    taken: list[list[str] | None] = []
    thread = threading.Thread(target=lambda: taken.append(get(runs, 1)))
    thread.start()
    thread.join(10)
    last = threading.Thread(target=lambda: taken.append(get(runs, 1)))
    last.start()
    until(lambda: runs.takers == 1)
    assert taken == [["b"]], "c waits for the end of b"
    runs.add("d", other, OWNED, "")
    last.join(10)
    assert taken == [["b"], ["d"]]


def test_close_wakes_waiting_threads_and_returns_what_has_not_begun(runs: RunQueue[str]) -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(get(runs)))
    runs.add("a", G, CHANGED, "begun")
    assert get(runs) == ["a"]
    thread.start()
    runs.add("a", G, CHANGED, "waits")
    assert runs.close() == ["waits"]
    thread.join(10)
    assert found == [None]
    assert not runs.add("b", G, CHANGED, "late")


# When it counts as stuck


LIMIT = 600.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(clock: Clock) -> RunQueue[str]:
    return RunQueue(2, clock)


def test_a_run_without_an_end_is_stuck(timed: RunQueue[str], clock: Clock) -> None:
    for key in ("a", "b"):
        timed.add(key, G, CHANGED, "")
    assert get(timed) == ["a", "b"]
    clock.now += LIMIT
    assert timed.stall(LIMIT) is None
    timed.done("a")
    clock.now += LIMIT
    assert timed.stall(LIMIT) is None, "its batch has made progress"
    clock.now += 1
    assert timed.stall(LIMIT) == Stall("b", LIMIT + 1, running=True)
    timed.done("b")
    assert timed.stall(LIMIT) is None


def test_a_run_that_no_thread_takes_is_stuck(timed: RunQueue[str], clock: Clock) -> None:
    clock.now += 100_000  # nothing to do for a long time
    timed.add("a", G, CHANGED, "")
    clock.now += 1
    timed.add("b", G, CHANGED, "")
    assert timed.stall(LIMIT) is None
    clock.now += LIMIT
    assert timed.stall(LIMIT) == Stall("a", LIMIT + 1, running=False)


def test_a_request_for_a_job_that_runs_is_not_stuck(timed: RunQueue[str], clock: Clock) -> None:
    timed.add("a", G, CHANGED, "first")
    get(timed)
    timed.add("a", G, CHANGED, "second")
    clock.now += LIMIT
    assert timed.stall(LIMIT) is None
    timed.done("a")
    assert timed.stall(LIMIT) is None, "it has been ready from now on"
    assert get(timed) == ["a"]


def test_a_thread_that_asks_for_work_is_not_stuck(timed: RunQueue[str], clock: Clock) -> None:
    timed.add("a", G, CHANGED, "")
    get(timed)
    timed.done("a")
    timed.close()
    assert get(timed) is None
    clock.now += LIMIT + 1
    assert timed.stall(LIMIT) is None
