"""The time that a reconcile may write, and whether in parallel."""

from __future__ import annotations

from ansible_collections.dljob.operator.plugins.module_utils.api import budget
from ansible_collections.dljob.operator.plugins.module_utils.api.budget import LEAST, Budget
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import CONNECTIONS


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
        assert [limit.take() for _ in range(2 * CONNECTIONS + 1)] == [True] * 2 * CONNECTIONS + [False]
        clock.now = expected - 0.01
        assert limit.take()


def test_only_the_writes_of_a_large_job_keep_to_the_window() -> None:
    assert not Budget(1.0).in_window(10 * LEAST)
    assert not Budget(1.0, in_window=True).in_window(LEAST)
    assert Budget(1.0, in_window=True).in_window(LEAST + 1)
