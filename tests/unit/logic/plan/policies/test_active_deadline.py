"""activeDeadlineSeconds."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.active_deadline import (
    overdue,
    time_left,
)
from support.builders import at, mxjob, stamp


@pytest.mark.parametrize(
    ("limit", "started", "left"),
    [(60, stamp(0), 50), (10, stamp(0), 0), (5, stamp(0), -5), (60, None, None), (None, stamp(0), None)],
)
def test_deadline(limit: int | None, started: str | None, left: float | None) -> None:
    assert time_left(mxjob().run_policy(activeDeadlineSeconds=limit).job(), started, at(10)) == left


@pytest.mark.parametrize(
    ("status", "quoted"),
    [
        ({}, ""),
        ({"phase": "Creating"}, ""),
        ({"phase": "Creating", "reason": "Pod/a: quota"}, "; not all of its replicas have run: Pod/a: quota"),
        ({"phase": "Running", "reason": "the others go on"}, ""),
    ],
)
def test_the_failure_quotes_what_the_job_was_waiting_for(status: dict[str, str], quoted: str) -> None:
    job = mxjob().run_policy(activeDeadlineSeconds=60).status(**status).job()
    assert overdue(job, None) is None
    assert overdue(job, 0.1) is None
    failure = overdue(job, 0)
    assert failure
    text = "the job was active for longer than spec.runPolicy.activeDeadlineSeconds, 60 s"
    assert (failure.reason, failure.message) == ("DeadlineExceeded", f"{text}{quoted}")
