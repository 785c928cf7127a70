"""What the status of a job loses on its suspension, and when."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.suspension import (
    PROGRESS,
    has_completed,
    without_completed,
)

COUNTS = {"retries": {"worker-0": 1}, "ignoredRetries": {"worker-1": 2}, "specHash": "a", "attempt": 1}


@pytest.mark.parametrize(
    ("status", "due"), [({}, False), (COUNTS, False), ({"completed": {}}, True), ({"completed": {"worker": "0"}}, True)]
)
def test_the_first_step_is_due_as_long_as_replicas_count_as_completed(status: dict[str, Any], due: bool) -> None:
    assert has_completed(status) is due
    assert not has_completed(without_completed(status))


def test_it_leaves_what_belongs_to_the_pods() -> None:
    assert without_completed({**COUNTS, "completed": {"worker": "0"}}) == COUNTS


def test_the_attempt_is_no_progress() -> None:
    """Pods of the last one may still terminate, and new ones must not be taken for them."""
    assert "attempt" not in PROGRESS
