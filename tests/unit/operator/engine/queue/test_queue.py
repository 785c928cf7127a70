from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.clock import Clock

from dljob_operator.engine.controller_settings import LARGEST_BATCH
from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.queue import (
    FIRST_BACKOFF,
    LONGEST_BACKOFF,
    SETTLE,
    SETTLE_EACH,
    NextRun,
    WorkQueue,
)
from dljob_operator.engine.queue.ready_lines import LONG
from dljob_operator.engine.queue.recent_changes import CONTENTION

G = Flow("g", "default")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> WorkQueue:
    return WorkQueue(clock)


def _one(_target: str) -> int:
    return 1


def _take(queue: WorkQueue, limit: int = 1) -> list[str]:
    taken = queue.get(lambda _group: limit, timeout=0)
    assert taken is not None
    return taken


def _in_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)


def test_jobs_come_out_in_the_order_they_went_in_and_once(queue: WorkQueue) -> None:
    for key in ("a", "b", "a"):
        queue.add(key, G, urgent=True)
    assert [_take(queue), _take(queue), _take(queue)] == [["a"], ["b"], []]


def test_an_owned_objects_event_waits_for_others(queue: WorkQueue, clock: Clock) -> None:
    queue.add("a", G)
    clock.pass_time(SETTLE / 2)
    queue.add("a", G)
    assert _take(queue) == []
    clock.pass_time(SETTLE / 2)
    assert _take(queue) == ["a"]


def test_the_events_of_a_large_job_wait_longer(queue: WorkQueue, clock: Clock) -> None:
    longer = SETTLE + 1000 * SETTLE_EACH
    assert SETTLE < longer < 1.0, "but not for long"
    queue.add("a", G, owned=1000)
    clock.pass_time(longer - 0.01)
    assert _take(queue) == []
    clock.pass_time(0.02)
    assert _take(queue) == ["a"]
    queue.add("a", G, owned=1000)
    assert queue.done("a", ok=True) == longer


def test_urgent_keys_come_first_but_not_for_ever(queue: WorkQueue, clock: Clock) -> None:
    for key in ("pods-1", "pods-2"):
        queue.add(key, G)
    clock.pass_time(SETTLE)
    for number in range(10):
        queue.add(f"new-{number}", G, urgent=True)
    assert [_take(queue)[0] for _ in range(12)] == [
        *("new-0", "new-1", "new-2", "new-3", "pods-1"),
        *("new-4", "new-5", "new-6", "new-7", "pods-2"),
        *("new-8", "new-9"),
    ]


def test_an_urgent_event_moves_a_queued_job_to_the_front(queue: WorkQueue, clock: Clock) -> None:
    for key in ("a", "b"):
        queue.add(key, G)
    clock.pass_time(SETTLE)
    assert _take(queue) == ["a"]
    queue.add("c", G)
    clock.pass_time(SETTLE)
    queue.add("d", G, urgent=True)
    assert _take(queue) == ["d"]
    queue.add("c", G, urgent=True)
    assert [_take(queue), _take(queue), _take(queue)] == [["c"], ["b"], []]


def test_a_running_job_is_not_given_out_again_but_runs_after(queue: WorkQueue, clock: Clock) -> None:
    queue.add("a", G, urgent=True)
    assert _take(queue) == ["a"]
    queue.add("a", G)
    clock.pass_time(60)
    assert _take(queue) == []
    assert queue.done("a", ok=True) == SETTLE
    clock.pass_time(SETTLE)
    assert _take(queue) == ["a"]
    assert queue.done("a", ok=True) is None
    clock.pass_time(1e6)
    assert _take(queue) == []


def test_an_urgent_event_during_a_run_is_not_made_to_wait(queue: WorkQueue) -> None:
    queue.add("a", G, urgent=True)
    _take(queue)
    queue.add("a", G, urgent=True)
    assert queue.done("a", ok=False) == 0.0
    assert _take(queue) == ["a"]


def test_events_of_a_runs_own_writes_do_not_requeue(queue: WorkQueue, clock: Clock) -> None:
    queue.add("a", G, urgent=True)
    _take(queue)
    queue.add("a", G, cause=("pod", "7"))
    queue.add("a", G, cause=("job", "8"), urgent=True)
    assert queue.done("a", ok=True, wrote={("pod", "7"), ("job", "8")}) is None
    queue.add("a", G, urgent=True)
    _take(queue)
    queue.add("a", G, cause=("pod", "9"))
    assert queue.done("a", ok=True, wrote={("pod", "8")}) == SETTLE


def test_a_job_runs_again_after_requeue_after(queue: WorkQueue, clock: Clock) -> None:
    queue.add("a", G, urgent=True)
    _take(queue)
    assert queue.done("a", ok=True, again_after=30) == 30
    clock.pass_time(29)
    assert _take(queue) == []
    clock.pass_time(1)
    assert _take(queue) == ["a"]


def test_an_event_precedes_requeue_after_and_replaces_it(queue: WorkQueue, clock: Clock) -> None:
    queue.add("a", G, urgent=True)
    _take(queue)
    queue.done("a", ok=True, again_after=30)
    queue.add("a", G)
    clock.pass_time(SETTLE)
    assert _take(queue) == ["a"]
    queue.done("a", ok=True)
    clock.pass_time(60)
    assert _take(queue) == []


def test_a_users_change_replaces_requeue_after(queue: WorkQueue, clock: Clock) -> None:
    """Otherwise the job would be given out a second time while it runs."""
    queue.add("a", G, urgent=True)
    _take(queue)
    queue.done("a", ok=True, again_after=30)
    queue.add("a", G, urgent=True)
    assert _take(queue) == ["a"]
    clock.pass_time(30)
    assert _take(queue) == []
    assert queue.done("a", ok=True) is None


def test_failures_back_off_up_to_a_limit_until_a_success(queue: WorkQueue, clock: Clock) -> None:
    queue.add("a", G, urgent=True)
    delays = []
    for _ in range(12):
        assert _take(queue) == ["a"]
        delay = queue.done("a", ok=False, again_after=0.1)
        assert delay is not None
        clock.pass_time(delay - 0.01)
        assert _take(queue) == []
        clock.pass_time(0.02)
        delays.append(delay)
    assert delays[:4] == [FIRST_BACKOFF, 2, 4, 8]
    assert delays[-1] == LONGEST_BACKOFF
    _take(queue)
    queue.done("a", ok=True)
    queue.add("a", G, urgent=True)
    _take(queue)
    assert queue.done("a", ok=False) == FIRST_BACKOFF


def test_events_of_pods_do_not_shorten_the_backoff_but_changes_of_the_job_do(queue: WorkQueue, clock: Clock) -> None:
    queue.add("a", G, urgent=True)
    for _ in range(3):
        _take(queue)
        queue.add("a", G)  # a pod changed during the run
        delay = queue.done("a", ok=False)
        assert delay is not None
        queue.add("a", G)  # and after it
        clock.pass_time(delay - 0.01)
        assert _take(queue) == []
        clock.pass_time(0.01)
    _take(queue)
    queue.done("a", ok=False)
    queue.add("a", G, urgent=True)
    assert _take(queue) == ["a"]
    assert queue.done("a", ok=False) == FIRST_BACKOFF


def test_done_counts_once_and_only_from_the_thread_that_got_the_key(queue: WorkQueue) -> None:
    """A caller that fails within a batch gives back all its keys; another thread may already have some of them."""
    queue.add("a", G, urgent=True)
    assert queue.get(lambda group: 1, timeout=0) == ["a"]
    queue.done("a", ok=True)
    queue.add("a", G, urgent=True)
    elsewhere = threading.Thread(target=lambda: queue.get(lambda group: 1, timeout=0))
    elsewhere.start()
    elsewhere.join()
    assert queue.done("a", ok=False) is None
    queue.add("a", G, urgent=True)
    assert queue.depth == 0, "it still runs there"


def test_a_discarded_job_is_not_queued(queue: WorkQueue, clock: Clock) -> None:
    queue.add("a", G, urgent=True)
    queue.add("b", G, urgent=True)
    queue.discard("a")
    assert _take(queue) == ["b"]
    queue.discard("b")
    assert queue.done("b", ok=False) is None
    clock.pass_time(1e6)
    assert _take(queue) == []


def test_a_job_that_waits_for_its_next_run_may_be_discarded(queue: WorkQueue, clock: Clock) -> None:
    queue.add("deleted", G, urgent=True)
    _take(queue)
    queue.done("deleted", ok=True, again_after=30)
    queue.discard("deleted")
    queue.add("other", G)
    clock.pass_time(30)
    assert [_take(queue), _take(queue)] == [["other"], []]


def test_a_job_whose_time_has_come_counts_as_ready(queue: WorkQueue, clock: Clock) -> None:
    queue.add("a", G)
    assert queue.depth == 0
    clock.pass_time(SETTLE)
    assert queue.depth == 1


def test_times_that_were_replaced_do_not_pile_up(queue: WorkQueue, clock: Clock) -> None:
    for _ in range(1000):
        queue.add("a", G, urgent=True)
        assert _take(queue) == ["a"]
        queue.done("a", ok=True, again_after=36000 + clock.now)
        clock.pass_time(1)
    assert len(queue._schedule._heap) < 100  # noqa: SLF001 - memory that no answer shows
    clock.pass_time(1e6)
    assert [_take(queue), _take(queue)] == [["a"], []]


class TestBatches:
    def test_hold_one_group_and_at_most_the_limit(self, queue: WorkQueue) -> None:
        for key, group in (("a1", "A"), ("b1", "B"), ("a2", "A"), ("a3", "A"), ("b2", "B")):
            queue.add(key, Flow(group, "default"), urgent=True)
        assert _take(queue, 2) == ["a1", "a2"]
        assert _take(queue, 2) == ["b1", "b2"]
        assert _take(queue, 2) == ["a3"]

    def test_are_shared_out_among_those_who_wait(self, queue: WorkQueue, clock: Clock) -> None:
        taken: list[list[str]] = []

        def work() -> None:
            keys = queue.get(lambda _group: 25)
            assert keys is not None
            taken.append(keys)

        for number in range(10):
            queue.add(f"k{number}", G)  # due only once the clock actions
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        while queue.waiting < 2:
            assert not taken
        clock.pass_time(SETTLE)
        for thread in threads:
            thread.join(30)
        assert sorted(map(len, taken)) == [5, 5]

    def test_do_not_hold_a_job_that_must_run_alone(self, queue: WorkQueue, clock: Clock) -> None:
        for key in ("a", "b", "c"):
            queue.add(key, G, urgent=True)
        assert _take(queue, 25) == ["a", "b", "c"]
        for key in ("a", "b", "c"):
            queue.done(key, ok=False, next_run=NextRun.ALONE)
        clock.pass_time(FIRST_BACKOFF)
        assert [_take(queue, 25), _take(queue, 25), _take(queue, 25)] == [["a"], ["b"], ["c"]]
        for key in ("a", "b", "c"):
            queue.done(key, ok=True)
            queue.add(key, G, urgent=True)
        assert _take(queue, 25) == ["a", "b", "c"]


class TestPostponedJobs:
    """Jobs that a run returned without a reconcile, because others of its batch took too long."""

    def test_keep_their_line(self, queue: WorkQueue, clock: Clock) -> None:
        queue.add("pods", G)
        clock.pass_time(SETTLE)
        for key in ("new", "newer"):
            queue.add(key, G, urgent=True)
        assert _take(queue) == ["new"]
        queue.postponed("new")
        assert [_take(queue), _take(queue), _take(queue)] == [["newer"], ["new"], ["pods"]]
        queue.postponed("pods")
        queue.add("last", G, urgent=True)
        assert [_take(queue), _take(queue)] == [["last"], ["pods"]]

    def test_keep_their_backoff(self, queue: WorkQueue, clock: Clock) -> None:
        queue.add("a", G, urgent=True)
        for delay in (FIRST_BACKOFF, 2 * FIRST_BACKOFF):
            assert _take(queue) == ["a"]
            assert queue.done("a", ok=False) == delay
            clock.pass_time(delay)
        assert _take(queue) == ["a"]
        queue.postponed("a")
        assert _take(queue) == ["a"]
        assert queue.done("a", ok=False) == 4 * FIRST_BACKOFF

    def test_come_first_once_a_user_changes_them(self, queue: WorkQueue, clock: Clock) -> None:
        for key in ("a", "b"):
            queue.add(key, G)
        clock.pass_time(SETTLE)
        assert _take(queue) == ["a"]
        queue.done("a", ok=False)
        queue.add("b", G, urgent=True)
        clock.pass_time(FIRST_BACKOFF)
        assert [_take(queue), _take(queue)] == [["b"], ["a"]]
        queue.add("a", G, urgent=True)
        queue.add("c", G, urgent=True)
        queue.postponed("a")
        assert [_take(queue), _take(queue)] == [["c"], ["a"]]
        assert queue.done("a", ok=False) == FIRST_BACKOFF, "the change has ended the backoff"

    def test_are_forgotten_once_they_are_deleted(self, queue: WorkQueue) -> None:
        queue.add("a", G, urgent=True)
        assert _take(queue) == ["a"]
        queue.discard("a")
        queue.postponed("a")
        assert _take(queue) == []


def test_jobs_of_a_slow_namespace_leave_a_thread_to_others(clock: Clock) -> None:
    """Of four namespaces, in which each write waits for a webhook, beside a fifth with one job."""
    queue = WorkQueue(clock, threads=2)
    for number in range(99):
        for namespace in "abde":
            queue.add(f"{namespace}{number}", Flow("g", namespace), urgent=True)
    first = _take(queue, 25)
    for key in first[:4]:
        queue.took(key[0], LONG)
        queue.done(key, ok=True)
    for key in first[4:]:
        queue.postponed(key)
    _in_thread(lambda: _take(queue, 25))
    assert _take(queue, 25) == [], "the other thread has a batch of theirs"
    queue.add("c0", Flow("g", "c"), urgent=True)
    assert _take(queue, 25) == ["c0"]


def test_get_wakes_for_a_key_a_due_time_and_close() -> None:
    queue = WorkQueue()
    taken: list[list[str] | None] = []

    def work() -> None:
        while (keys := queue.get(_one)) is not None:
            taken.append(keys)
            for key in keys:
                queue.done(key, ok=True, again_after=0.01 if len(taken) < 3 else None)
        taken.append(None)

    thread = threading.Thread(target=work)
    thread.start()
    queue.add("a", G, urgent=True)
    while len(taken) < 3:
        assert thread.is_alive()
    queue.close()
    thread.join(10)
    assert taken == [["a"], ["a"], ["a"], None]


class TestLargeJobs:
    """Jobs whose last run ended before it had written everything."""

    @staticmethod
    def _begin(queue: WorkQueue, *keys: str) -> None:
        """Each of `keys` has had its first run, and continues."""
        for key in keys:
            queue.add(key, G, urgent=True)
            assert _take(queue) == [key]
            queue.done(key, ok=True, next_run=NextRun.CONTINUING)

    def test_continue_at_once_although_their_pods_changed(self, queue: WorkQueue) -> None:
        queue.add("large", G, urgent=True)
        assert _take(queue) == ["large"]
        queue.add("large", G, cause=("pod", "1"), owned=5000)
        assert queue.done("large", ok=True, next_run=NextRun.CONTINUING) == 0
        assert _take(queue) == ["large"]

    def test_leave_one_thread_to_the_others(self, clock: Clock) -> None:
        queue = WorkQueue(clock, threads=3)
        self._begin(queue, "one", "two", "three")
        assert [_take(queue), _take(queue), _take(queue)] == [["one"], ["two"], []]
        queue.add("small", G, urgent=True)
        assert _take(queue) == ["small"]
        queue.done("one", ok=True, next_run=NextRun.CONTINUING)
        assert _take(queue) == ["three"], "they take turns"

    def test_that_are_changed_may_occupy_the_last_thread(self, clock: Clock) -> None:
        queue = WorkQueue(clock, threads=2)
        self._begin(queue, "one", "two")
        assert [_take(queue), _take(queue)] == [["one"], []]
        queue.add("two", G, urgent=True)
        assert _take(queue) == ["two"]
        assert queue.continuing(["one", "two", "another"]) == ["one"], "the runs that leave a thread to the others"

    @pytest.mark.parametrize("ok", [True, False])
    def test_that_are_changed_meanwhile_do_not_wait_for_the_slices_of_others(self, clock: Clock, ok: bool) -> None:
        queue = WorkQueue(clock, threads=2)
        self._begin(queue, "one", "two", "three")
        assert _take(queue) == ["one"]
        queue.add("one", G, cause=("one", "7"), urgent=True)
        assert queue.done("one", ok=ok, next_run=NextRun.CONTINUING) == 0
        assert _take(queue) == ["one"]
        assert queue.continuing(["one"]) == []
        assert _take(queue) == ["two"]

    def test_wake_a_thread_that_waits_for_a_turn(self) -> None:
        queue = WorkQueue(threads=2)
        self._begin(queue, "one", "two")
        assert _take(queue) == ["one"]
        taken: list[list[str] | None] = []
        thread = threading.Thread(target=lambda: taken.append(queue.get(_one, 20)))
        thread.start()
        while not queue.waiting:
            pass
        queue.done("one", ok=True)
        thread.join(10)
        assert taken == [["two"]]

    def test_a_deleted_one_gives_its_turn_to_the_next(self, clock: Clock) -> None:
        queue = WorkQueue(clock, threads=2)
        self._begin(queue, "one", "two")
        assert _take(queue) == ["one"]
        queue.discard("one")
        assert _take(queue) == []
        queue.done("one", ok=True, next_run=NextRun.CONTINUING)
        assert _take(queue) == ["two"]

    def test_run_although_small_jobs_come_without_end(self, clock: Clock) -> None:
        queue = WorkQueue(clock, threads=2)
        self._begin(queue, "large")
        for number in range(20):
            queue.add(f"small{number}", G, urgent=True)
        assert ["large"] in [_take(queue) for _ in range(6)]

    def test_share_no_run(self, queue: WorkQueue) -> None:
        self._begin(queue, "one", "two")
        assert _take(queue, 25) == ["one"]

    def test_a_users_change_comes_first(self, clock: Clock) -> None:
        queue = WorkQueue(clock, threads=2)
        self._begin(queue, "one", "two")
        queue.add("two", G, urgent=True)
        assert [_take(queue), _take(queue)] == [["two"], ["one"]]


# --- contention: whether users wait for other jobs


def test_users_changes_and_deletions_are_counted(clock: Clock) -> None:
    counted: list[str] = []
    queue = WorkQueue(clock, on_change=counted.append)
    queue.add("a", G, urgent=True)
    assert counted == ["a"]
    queue.add("a", G, cause=("pod", "1"), owned=3)
    assert counted == ["a"]
    assert _take(queue) == ["a"]
    queue.add("a", G, urgent=True)
    queue.add("b", G, urgent=True)
    queue.discard("a")
    assert counted == ["a", "a", "b", "a"]


def test_a_job_alone_is_not_contended(queue: WorkQueue) -> None:
    queue.add("a", G, urgent=True)
    assert not queue.is_contended(["a"])


def test_a_job_is_contended_for_a_while_after_a_change_of_another(queue: WorkQueue, clock: Clock) -> None:
    queue.add("large", G, urgent=True)
    queue.add("small", G, urgent=True)
    queue.add("large", G, urgent=True)
    assert CONTENTION == 2.0, "docs/architecture.md promises it to the users of other jobs"
    clock.pass_time(CONTENTION - 0.01)
    assert queue.is_contended(["large"])
    assert not queue.is_contended(["large", "small"])
    clock.pass_time(0.02)
    assert not queue.is_contended(["large"])


def test_its_latest_change_counts_and_those_of_owned_objects_do_not(queue: WorkQueue, clock: Clock) -> None:
    for _ in range(3):
        queue.add("small", G, urgent=True)
        clock.pass_time(CONTENTION / 2)
    assert queue.is_contended(["large"])
    clock.pass_time(CONTENTION)
    queue.add("small", G)
    assert not queue.is_contended(["large"])


@pytest.mark.parametrize(
    "earlier", [("a", "b"), ("large", "b"), ("a", "large"), ("a", "b", "a"), ("new", "a"), ("new", "a", "b")]
)
def test_the_latest_change_is_not_forgotten_for_an_earlier_one(
    queue: WorkQueue, clock: Clock, earlier: tuple[str, ...]
) -> None:
    for key in earlier:
        queue.add(key, G, urgent=True)
    clock.pass_time(CONTENTION)
    for key in ("new", "large"):
        queue.add(key, G, urgent=True)
    assert queue.is_contended(["large"])
    assert not queue.is_contended(["large", "new"])


def test_a_full_batch_of_changed_jobs_is_contended_by_one_more(queue: WorkQueue) -> None:
    batch = [f"job-{number}" for number in range(LARGEST_BATCH)]
    for key in ("other", *batch):
        queue.add(key, G, urgent=True)
    assert queue.is_contended(batch)
    assert not queue.is_contended([*batch, "other"])


def test_what_it_knows_of_changes_does_not_grow(queue: WorkQueue) -> None:
    for number in range(1000):
        queue.add(f"job-{number}", G, urgent=True)
    assert len(queue._changes) == LARGEST_BATCH + 1  # noqa: SLF001 - memory that no answer shows
    assert queue.is_contended(["job-999"])


def test_a_change_after_many_others_is_known(queue: WorkQueue, clock: Clock) -> None:
    for number in range(1000):
        queue.add(f"job-{number}", G, urgent=True)
    clock.pass_time(CONTENTION)
    queue.add("new", G, urgent=True)
    assert queue.is_contended(["large"])
    assert not queue.is_contended(["new"])
