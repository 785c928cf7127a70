"""The time that a reconcile may write, and whether in parallel."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.api import budget
from ansible_collections.dljob.operator.plugins.module_utils.api.budget import LEAST, Budget


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_writes_end_when_the_time_is_over() -> None:
    clock = Clock()
    limit = Budget(0.5, clock=clock)
    clock.now = 0.49
    assert all(limit.take() for _ in range(10 * LEAST))
    clock.now = 0.5
    assert not limit.take()


def test_a_small_job_is_written_at_once_however_slow_the_api_server_is() -> None:
    clock = Clock()
    limit = Budget(0.5, clock=clock)
    clock.now = 60.0
    assert [limit.take() for _ in range(LEAST + 2)] == [True] * LEAST + [False] * 2


def test_the_times_are_those_of_the_documentation() -> None:
    """docs/architecture.md and docs/reliability.md promise them to the users of other jobs."""
    for seconds, expected in [(budget.FIRST_SECONDS, 0.25), (budget.SECONDS, 0.5)]:
        clock = Clock()
        limit = Budget(seconds, clock=clock)
        clock.now = expected
        assert [limit.take() for _ in range(LEAST + 1)] == [True] * LEAST + [False]
        clock.now = expected - 0.01
        assert limit.take()


def test_only_the_writes_of_a_large_job_keep_to_the_window() -> None:
    assert not Budget(1.0).in_window(10 * LEAST)
    assert not Budget(1.0, is_contended=True).in_window(LEAST)
    assert Budget(1.0, is_contended=True).in_window(LEAST + 1)


def test_a_large_job_is_beside_others_once_it_has_more_writes_than_a_small_one() -> None:
    limit, alone = Budget(60.0, is_contended=True), Budget(60.0)
    for number in range(LEAST + 2):
        assert (limit.is_beside_others, alone.is_beside_others) == (number > LEAST, False)
        assert limit.take()
        assert alone.take()


def test_a_job_alone_writes_for_longer_until_a_user_changes_one() -> None:
    assert budget.ALONE_SECONDS == 4.0, "docs/architecture.md and docs/reliability.md promise it to the users of others"
    clock, changed = Clock(), False
    limit = Budget(0.5, is_alone=lambda: not changed, clock=clock)
    clock.now = 3.99
    assert all(limit.take() for _ in range(10 * LEAST))
    assert not limit.in_window(LEAST + 1)
    changed = True
    assert not limit.take()
    assert limit.in_window(LEAST + 1)
    assert not limit.in_window(LEAST)
    changed = False
    clock.now = 4.0
    assert not limit.take()


def test_a_change_leaves_a_job_the_time_that_it_has_beside_others() -> None:
    clock = Clock()
    limit = Budget(0.5, is_alone=lambda: False, clock=clock)
    clock.now = 0.49
    assert all(limit.take() for _ in range(10 * LEAST))


def test_a_job_beside_others_is_not_alone_for_the_lack_of_further_changes() -> None:
    clock = Clock()
    limit = Budget(0.5, is_contended=True, is_alone=lambda: True, clock=clock)
    clock.now = 0.5
    assert [limit.take() for _ in range(LEAST + 1)] == [True] * LEAST + [False]
