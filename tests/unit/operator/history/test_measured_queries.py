"""The measurement of the history's queries beside SQL by hand: both give the same rows."""

from __future__ import annotations

import pytest
from devtools.lab.history_queries import all_measured
from devtools.testbed.base.errors import ClusterError


def test_both_ways_of_asking_give_the_same_report() -> None:
    """Of few jobs, whose times say nothing."""
    try:
        assert len(list(all_measured(2_000))) == 6
    except ClusterError as error:
        pytest.skip(f"PostgreSQL cannot be had here: {error}")
