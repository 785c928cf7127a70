"""The time that a reconcile may write, and whether in parallel."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import budget
from ansible_collections.dljob.operator.plugins.module_utils.api.budget import (
    LEAST,
    LEAST_BESIDE_OTHERS,
    Budget,
    Times,
    Users,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import (
    CONTENTION,
    ChangeCounter,
    ChangesSince,
)
from support.clock import Clock

TIMES = Times(shortest=0.5, unchanged=1.5, alone=4.0)
OWN, OTHER = "u-1", "u-2"
SMALL, LARGE = LEAST, LEAST + 1


class Engine:
    """A reconcile of a job, and the users who change jobs meanwhile. One has changed another job just before."""

    def __init__(self, writes: int = LARGE, *, is_contended: bool = False, continues: bool = True) -> None:
        self.clock = Clock(0.0)
        self.counter = ChangeCounter.create(self.clock)
        self.counter.increment(OTHER)
        changes = ChangesSince(self.counter, self.counter.counts([OWN] if continues else []))
        self.budget = Budget(TIMES, writes, Users(OWN, is_contended, changes), self.clock)

    def ends_at(self, seconds: float) -> bool:
        """Whether writes may start until then, and none later."""
        self.clock.now = seconds - 0.01
        before = all(self.budget.take() for _ in range(LEAST + 1))
        self.clock.now = seconds
        return before and not self.budget.take()


def test_the_times_are_those_of_the_documentation() -> None:
    """docs/architecture.md and docs/reliability.md promise them to the users of other jobs."""
    assert Times(shortest=0.25, unchanged=0.25, alone=4.0) == budget.OF_NEW_JOB
    assert Times(shortest=0.5, unchanged=4.0, alone=4.0) == budget.OF_JOB_WITH_PODS
    assert budget.OF_JOB_WITH_PODS.always_short() == Times(0.5, 0.5, 0.5, LEAST, LEAST)


@pytest.mark.parametrize(
    ("changed", "is_contended", "continues", "seconds"),
    [
        ([], False, True, TIMES.alone),
        ([], False, False, TIMES.alone),
        ([], True, True, TIMES.unchanged),
        ([OTHER], False, True, TIMES.unchanged),
        ([OTHER], True, True, TIMES.unchanged),
        ([], True, False, TIMES.shortest),
        ([OTHER], False, False, TIMES.shortest),
        ([OWN], False, True, TIMES.shortest),
        ([OTHER, OWN], True, True, TIMES.shortest),
    ],
)
@pytest.mark.parametrize("writes", [SMALL, LARGE])
def test_writes_end_when_the_time_is_over(
    changed: list[str], is_contended: bool, continues: bool, seconds: float, writes: int
) -> None:
    engine = Engine(writes, is_contended=is_contended, continues=continues)
    for key in changed:
        engine.counter.increment(key)
    assert engine.ends_at(seconds)


def test_without_knowledge_of_changes_writes_end_after_the_shortest_time() -> None:
    for is_contended in (True, False):
        engine = Engine()
        engine.budget = Budget(TIMES.always_short(), LARGE, Users(OWN, is_contended), engine.clock)
        assert engine.ends_at(TIMES.shortest)


def test_where_the_engine_does_not_say_it_users_may_have_changed_the_job_and_still_wait() -> None:
    changes = budget.UnknownChanges()
    assert (changes.of(OWN), changes.of_any(), changes.are_recent()) == (True, False, True)


@pytest.mark.parametrize("is_contended", [True, False])
def test_a_job_that_is_changed_while_it_writes_stops(is_contended: bool) -> None:
    engine = Engine(is_contended=is_contended)
    engine.clock.now = 1.0
    assert all(engine.budget.take() for _ in range(10 * LEAST))
    engine.counter.increment(OTHER)
    assert engine.budget.take()
    engine.counter.increment(OWN)
    assert not engine.budget.take()


@pytest.mark.parametrize("is_contended", [True, False])
def test_users_wait_for_some_time_after_the_last_change(is_contended: bool) -> None:
    engine = Engine(is_contended=is_contended)
    engine.clock.now = 0.5
    engine.counter.increment(OTHER)
    engine.clock.now = 0.5 + CONTENTION - 0.01
    assert engine.budget.is_beside_others
    engine.clock.now += 0.01
    assert not engine.budget.is_beside_others


def test_users_wait_for_some_time_after_the_begin_of_a_contended_reconcile() -> None:
    """ansible-operator may start the runs of new jobs long after their events."""
    engine = Engine(is_contended=True)
    engine.clock.now = 10.0
    engine.budget = Budget(TIMES, LARGE, Users(OWN, True, ChangesSince(engine.counter, {OWN: 0})), engine.clock)
    assert not engine.counter.is_recent()
    assert engine.budget.is_beside_others
    engine.clock.now += CONTENTION
    assert not engine.budget.is_beside_others


@pytest.mark.parametrize("is_contended", [True, False])
@pytest.mark.parametrize(("changed", "continues"), [(OWN, True), (OTHER, False)])
def test_the_end_of_the_wait_makes_no_slice_longer(is_contended: bool, changed: str, continues: bool) -> None:
    """Of a job that a user has deleted, or that may hold the last worker."""
    engine = Engine(is_contended=is_contended, continues=continues)
    engine.counter.increment(changed)
    engine.clock.now = CONTENTION + 0.1
    assert all(engine.budget.take() for _ in range(LEAST))
    assert not engine.budget.take()


@pytest.mark.parametrize(
    ("writes", "is_contended", "least"),
    [(SMALL, False, LEAST), (SMALL, True, LEAST), (LARGE, False, LEAST), (LARGE, True, LEAST_BESIDE_OTHERS)],
)
def test_some_writes_are_never_cut_however_slow_the_api_server_is(writes: int, is_contended: bool, least: int) -> None:
    engine = Engine(writes, is_contended=is_contended)
    engine.clock.now = 60.0
    engine.counter.increment(OWN if is_contended else "")
    engine.clock.now += 0.0 if is_contended else CONTENTION
    assert [engine.budget.take() for _ in range(least + 2)] == [True] * least + [False] * 2


@pytest.mark.parametrize(("writes", "beside"), [(SMALL, False), (LARGE, True)])
def test_only_the_writes_of_a_large_job_are_beside_others(writes: int, beside: bool) -> None:
    assert not Budget(TIMES, writes).is_beside_others
    assert not Engine(writes).budget.is_beside_others
    assert Budget(TIMES, writes, Users(OWN, is_contended=True)).is_beside_others is beside
    assert Engine(writes, is_contended=True).budget.is_beside_others is beside


def test_a_large_job_is_beside_others_once_a_user_changes_one() -> None:
    engine = Engine()
    assert not engine.budget.is_beside_others
    engine.counter.increment(OTHER)
    assert engine.budget.is_beside_others


def test_a_large_job_pauses_from_its_first_creation_beside_others() -> None:
    engines = [Engine(is_contended=True), Engine(), Engine(SMALL, is_contended=True)]
    assert all(engine.budget.take() for engine in engines)
    assert [engine.budget.pauses for engine in engines] == [True, False, False]


def test_a_slice_that_always_stays_short_begins_without_pauses() -> None:
    """It has few creations, for which the whole job is read and planned."""
    limit = Budget(TIMES.always_short(), LARGE, Users(OWN, is_contended=True), Clock(0.0))
    for number in range(LEAST + 2):
        assert limit.take()
        assert limit.pauses is (number >= LEAST)
