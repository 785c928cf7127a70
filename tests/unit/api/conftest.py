"""A reconcile that has time for all its writes, however busy the machine is."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import budget


@pytest.fixture
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test of slices of ``slices.LARGEST`` objects: on a busy machine the budget in seconds ends them earlier."""
    for times in ("OF_NEW_JOB", "OF_JOB_WITH_PODS"):
        monkeypatch.setattr(budget, times, budget.Times(600.0, 600.0, 600.0))
