"""What the status of a job loses on its suspension, and when."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.suspension import (
    first_step,
    later_steps,
    survivors,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    PROGRESS,
    InvalidStatusBuilder,
    StatusBuilder,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import BatchJobRef, Observed
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Fact, Plan, presume
from support.builders import NOW, mxjob, observed, pod_of, stamp

COUNTS = {"retries": {"worker-0": 1}, "ignoredRetries": {"worker-1": 2}, "specHash": "a", "attempt": 1}


@pytest.mark.parametrize(
    ("status", "due"), [({}, False), (COUNTS, False), ({"completed": {}}, True), ({"completed": {"worker": "0"}}, True)]
)
def test_the_first_step_is_due_as_long_as_replicas_count_as_completed(status: dict[str, Any], due: bool) -> None:
    first = first_step(status)
    assert (first is not None) is due
    if first:
        assert first.status is not None
        assert first_step(first.status) is None


def test_it_leaves_what_belongs_to_the_pods() -> None:
    assert first_step({**COUNTS, "completed": {"worker": "0"}}) == Plan(status=COUNTS, requeue_after=0)


@pytest.mark.parametrize("kind", [StatusBuilder, InvalidStatusBuilder], ids=["valid", "invalid"])
def test_the_status_is_written_once_no_pod_is_left(kind: type[StatusBuilder | InvalidStatusBuilder]) -> None:
    report = kind(mxjob().v1().status(startTime=stamp()).job(), NOW)
    report.suspended()
    pod, other = Deletion("Pod", "a", "b"), Deletion("Service", "c", "d")
    second = later_steps([pod], Plan(deletions=(other,)), report)
    assert (second.deletions, second.status, second.events, second.requeue_after) == ((pod, other), None, (), 0)
    assert second.presumes == presume({Fact.SPEC_IS_CURRENT: True})
    third = later_steps([], Plan(deletions=(other,)), report)
    assert (third.deletions, third.requeue_after) == ((other,), None)
    assert [event.reason for event in third.events] == ["MXJobSuspended"]
    assert third.presumes == presume({Fact.PODS_ARE_KNOWN: True})


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
