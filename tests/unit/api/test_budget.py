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
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ANY_JOB

TIMES = Times(changed=0.5, unchanged=2.0, alone=4.0)
OWN, OTHER = "u-1", "u-2"
SMALL, LARGE = LEAST, LEAST + 1


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Changes:
    """What users have changed."""

    def __init__(self, *changed: str) -> None:
        self.changed = set(changed)

    def __call__(self, key: str) -> bool:
        return bool(self.changed) if key == ANY_JOB else key in self.changed


def ends_at(limit: Budget, clock: Clock, seconds: float) -> bool:
    """Whether it permits writes until then, and none later."""
    clock.now = seconds - 0.01
    before = all(limit.take() for _ in range(LEAST + 1))
    clock.now = seconds
    return before and not limit.take()


def test_the_times_are_those_of_the_documentation() -> None:
    """docs/architecture.md and docs/reliability.md promise them to the users of other jobs."""
    assert Times(changed=0.25, unchanged=0.25, alone=4.0) == budget.OF_NEW_JOB
    assert Times(changed=0.5, unchanged=4.0, alone=4.0) == budget.OF_JOB_WITH_PODS


@pytest.mark.parametrize(
    ("changed", "is_contended", "seconds"),
    [
        ([], False, TIMES.alone),
        ([], True, TIMES.unchanged),
        ([OTHER], False, TIMES.unchanged),
        ([OTHER], True, TIMES.unchanged),
        ([OWN], False, TIMES.changed),
        ([OTHER, OWN], True, TIMES.changed),
    ],
    ids=["alone", "beside others", "alone no longer", "beside others that change", "changed", "changed beside others"],
)
@pytest.mark.parametrize("writes", [SMALL, LARGE])
def test_writes_end_when_the_time_is_over(changed: list[str], is_contended: bool, seconds: float, writes: int) -> None:
    clock = Clock()
    assert ends_at(Budget(TIMES, writes, Users(OWN, is_contended, Changes(*changed)), clock), clock, seconds)


def test_without_knowledge_of_changes_writes_end_after_the_shortest_time() -> None:
    clock = Clock()
    assert ends_at(Budget(TIMES, LARGE, Users(OWN), clock), clock, TIMES.changed)


@pytest.mark.parametrize("is_contended", [True, False])
def test_a_job_that_is_changed_while_it_writes_stops(is_contended: bool) -> None:
    clock, changes = Clock(), Changes()
    limit = Budget(TIMES, LARGE, Users(OWN, is_contended, changes), clock)
    clock.now = 1.0
    assert all(limit.take() for _ in range(10 * LEAST))
    changes.changed.add(OTHER)
    assert limit.take()
    changes.changed.add(OWN)
    assert not limit.take()


@pytest.mark.parametrize(
    ("writes", "is_contended", "least"),
    [(SMALL, False, LEAST), (SMALL, True, LEAST), (LARGE, False, LEAST), (LARGE, True, LEAST_BESIDE_OTHERS)],
)
def test_some_writes_are_never_cut_however_slow_the_api_server_is(writes: int, is_contended: bool, least: int) -> None:
    clock = Clock()
    limit = Budget(TIMES, writes, Users(OWN, is_contended, Changes()), clock)
    clock.now = 60.0
    assert [limit.take() for _ in range(least + 2)] == [True] * least + [False] * 2


@pytest.mark.parametrize(("writes", "beside"), [(SMALL, False), (LARGE, True)])
def test_only_the_writes_of_a_large_job_are_beside_others(writes: int, beside: bool) -> None:
    assert not Budget(TIMES, writes).is_beside_others
    assert not Budget(TIMES, writes, Users(OWN, has_changed=Changes())).is_beside_others
    assert Budget(TIMES, writes, Users(OWN, is_contended=True)).is_beside_others is beside
    assert Budget(TIMES, writes, Users(OWN, has_changed=Changes(OTHER))).is_beside_others is beside


def test_a_large_job_is_beside_others_once_a_user_changes_one() -> None:
    changes = Changes()
    limit = Budget(TIMES, LARGE, Users(OWN, has_changed=changes))
    assert not limit.is_beside_others
    changes.changed.add(OTHER)
    assert limit.is_beside_others
