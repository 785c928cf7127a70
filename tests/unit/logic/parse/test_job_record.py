"""What is read of a job whose spec is invalid."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework import naming
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import job_record
from ansible_collections.dljob.operator.plugins.module_utils.values.job import JobRecord
from support.builders import UID, mxjob


def test_the_record_of_a_valid_job_is_what_the_job_has() -> None:
    made = mxjob("digits").v1().run_policy(suspend=True, ttlSecondsAfterFinished=5).status(state="Running")
    job, record = made.job(), job_record.read(made.resource())
    for name in ("kind", "name", "generation", "runtime_id", "status", "is_queued"):
        assert getattr(record, name) == getattr(job, name)
    assert (record.run_policy.suspend, record.run_policy.ttl_seconds_after_finished) == (True, 5)


def test_nothing_has_to_be_there() -> None:
    record = job_record.read({"metadata": None, "spec": ["x"], "status": "x"})
    assert record == JobRecord(
        kind="", name="", generation=0, runtime_id=naming.runtime_id(""), run_policy=record.run_policy
    )
    assert (record.run_policy.suspend, record.run_policy.ttl_seconds_after_finished) == (False, None)


@pytest.mark.parametrize(("known", "expected"), [("aycw", "aycw"), (None, naming.runtime_id(UID))])
def test_a_recorded_runtime_id_stays(known: str | None, expected: str) -> None:
    assert job_record.read(mxjob().status(runtimeId=known).resource()).runtime_id == expected


@pytest.mark.parametrize(
    ("ttl", "expected"), [(0, 0), (2**40, 2**40), (-1, None), (True, None), ("60", None), (1.5, None), (None, None)]
)
def test_a_time_to_live_that_is_invalid_is_none(ttl: Any, expected: int | None) -> None:
    record = job_record.read(mxjob().v1().run_policy(ttlSecondsAfterFinished=ttl).resource())
    assert record.run_policy.ttl_seconds_after_finished == expected


@pytest.mark.parametrize("suspend", [1, "true", None, False])
def test_only_true_suspends(suspend: Any) -> None:
    assert not job_record.read(mxjob().v1().run_policy(suspend=suspend).resource()).run_policy.suspend


def test_kueue_deletes_its_copies_itself() -> None:
    resource = mxjob().v1().run_policy(ttlSecondsAfterFinished=0).resource()
    resource["metadata"]["labels"] = {"kueue.x-k8s.io/multikueue-origin": "a", "kueue.x-k8s.io/queue-name": "b"}
    record = job_record.read(resource)
    assert (record.run_policy.ttl_seconds_after_finished, record.is_queued) == (None, True)
