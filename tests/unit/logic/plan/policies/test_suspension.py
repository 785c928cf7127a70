"""What the status of a job loses on its suspension, and when."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.suspension import (
    has_completed,
    survivors,
    without_completed,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import PROGRESS
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import BatchJobRef, Observed
from support.builders import mxjob, observed, pod_of

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


@pytest.mark.parametrize(("condition", "count"), [("True", 1), ("False", 0), (None, 0)])
def test_pods_that_a_suspended_status_contradicts(condition: str | None, count: int) -> None:
    conditions = [{"type": "Suspended", "status": condition}] if condition else []
    job = mxjob().v1().workers(2).status(conditions=conditions).job()
    kept, ending = pod_of(job, "worker", 0).running(), pod_of(job, "worker", 1).deleting()
    found = survivors(job.status, observed(job, [kept, ending]))
    assert found == (kept.view().uid,) * count


def test_of_a_pod_of_a_batch_job_it_is_the_job() -> None:
    """The suspension deletes the batch Job, and by it the pod."""
    job = mxjob().v1().workers(1).status(conditions=[{"type": "Suspended", "status": "True"}]).job()
    pod = dataclasses.replace(pod_of(job, "worker").running().view(), batch_job=BatchJobRef("a", "b"))
    assert survivors(job.status, Observed(pods=(pod,))) == ("b",)
