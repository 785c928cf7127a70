"""The history answers about as fast as SQL by hand, with 1,000,000 jobs."""

from __future__ import annotations

import pytest
from devtools.lab.history_queries import GOAL, all_measured
from devtools.testbed.base.errors import ClusterError


@pytest.mark.full
def test_the_newest_jobs_and_a_report_take_at_most_twice_the_time_of_sql_by_hand() -> None:
    try:
        found = list(all_measured())
    except ClusterError as error:
        pytest.skip(f"PostgreSQL cannot be had here: {error}")
    print(*found, sep="\n")
    assert [one for one in found if one.ratio > GOAL] == []
    assert len(found) == 6


def test_both_ways_of_asking_give_the_same_report() -> None:
    """Of few jobs, whose times say nothing."""
    try:
        assert len(list(all_measured(2_000))) == 6
    except ClusterError as error:
        pytest.skip(f"PostgreSQL cannot be had here: {error}")
