"""What the history keeps of a job, also of one whose status a tenant wrote."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.history import NOW, USAGE, ended, job, stamp

from dljob_operator.history.record import LONGEST_MESSAGE, LONGEST_NAME, Place, day_record, job_record
from dljob_operator.history.store import job_row

PLACE = Place("lab", "https://logs.example.com/?q={namespace}/{name}&u={uid}&from={started_ms}&to={ended}&{other}")


def row(found: dict[str, Any], *, is_deleted: bool = False, now: datetime = NOW) -> dict[str, Any]:
    record = job_record(found, PLACE, now, is_deleted=is_deleted)
    assert record is not None
    return job_row(record)


def test_a_job_that_succeeded() -> None:
    made = ended(labels={"dljob.operator/user": "ada", "kueue.x-k8s.io/queue-name": "gpus"})
    made["status"] |= {"retries": {"worker-0": 2, "worker-1": 1}, "trainerStatus": {"progressPercentage": 97}}
    found = row(made)
    link = found.pop("log_link")
    assert link == (
        "https://logs.example.com/?q=team/digits&u=uid-digits&from=1796037000000&to=2026-11-30T12%3A00%3A00Z&%7Bother%7D"
    )
    assert found == {
        "uid": "uid-digits", "cluster": "lab", "namespace": "team", "kind": "PyTorchJob",
        "api_version": "kubeflow.org/v1", "name": "digits", "user_name": "ada", "queue": "gpus",
        "created": NOW - timedelta(hours=1), "started": NOW - timedelta(minutes=50), "ended": NOW,
        "result": "Succeeded", "reason": "JobSucceeded", "message": "it succeeded", "replicas": 4, "restarts": 3,
        "preemptions": 0, "queued_seconds": 600.0, "starting_seconds": 300.0, "running_seconds": 2700.0,
        "restarting_seconds": 0.0, "suspended_seconds": 0.0, "gpu_seconds": 0.0, "cpu_core_seconds": 0.0,
        "memory_gib_seconds": 0.0, "usage": None, "progress_percent": 97, "version": 1,
    }  # fmt: skip


def test_the_account_of_a_job() -> None:
    made = ended()
    made["status"]["usage"] = USAGE
    found = row(made)
    assert [found[f"{name}_seconds"] for name in ("gpu", "cpu_core", "memory_gib")] == [350.0, 100.0, 200.0]
    assert (found["queued_seconds"], found["running_seconds"], found["preemptions"]) == (60.0, 2000.0, 3)
    assert found["usage"]["interruptions"][1] == {
        "cause": "Disruption", "count": 3, "seconds": 9.0, "resourceSeconds": {"cpu": 4.0}
    }  # fmt: skip
    assert "held" not in found["usage"] and "other" not in found["usage"]["seconds"]


def test_a_job_that_goes_on_has_no_record_until_it_is_deleted() -> None:
    made = job()
    made["status"] = {"state": "Running", "usage": USAGE}
    assert job_record(made, PLACE, NOW) is None
    found = row(made, is_deleted=True)
    assert (found["result"], found["ended"]) == ("Deleted", NOW)
    assert found["gpu_seconds"] == 350 + 2 * 600, "what it held from the account's time to its deletion"
    asked = NOW - timedelta(minutes=1)
    made["metadata"]["deletionTimestamp"] = stamp(asked)
    assert row(made, is_deleted=True)["ended"] == asked
    assert row(ended(), is_deleted=True)["result"] == "Succeeded", "its end is known"


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [
        ({"tfReplicaSpecs": {"Worker": {"replicas": 3}, "PS": {}}}, 4),
        ({"replicaSpecs": [{"replicas": 2}, {"mxReplicaType": "SERVER", "replicas": 5}]}, 7),
        ({"replica_specs": [{}]}, 1),
        ({"replicaSpecs": {"replicas": 6, "template": {}}}, 6),
        ({"replicas": {"Worker": {"count": 8, "template": {}}, "Master": {"template": {}}}}, 9),
        ([{"replicas": 2}, {"replicas": 3}], 5),
        ({"replicas": {"Worker": {"replicas": -4}, "Other": 7}}, 0),
        ({"replicas": 10**30}, 0),
        ({"tfReplicaSpecs": {"Worker": {"replicas": 10**30}}}, 2**31 - 1),
        (None, 0),
    ],
)
def test_the_replicas_of_every_layout(spec: Any, replicas: int) -> None:
    assert row({**ended(), "spec": spec})["replicas"] == replicas


@pytest.mark.parametrize(
    ("marks", "user", "queue"),
    [
        ({}, "", ""),
        ({"annotations": {"app.kubernetes.io/created-by": "c", "arena.kubeflow.org/console-user": "a"}}, "a", ""),
        ({"labels": {"dljob.operator/user": "l"}, "annotations": {"dljob.operator/user": "a"}}, "l", ""),
        ({"annotations": {"dljob.operator/user": "x" * 999}}, "x" * LONGEST_NAME, ""),
    ],
)
def test_the_user_and_the_queue(marks: dict[str, Any], user: str, queue: str) -> None:
    found = row(ended(**marks))
    assert (found["user_name"], found["queue"]) == (user, queue)


def test_the_queue_of_a_gang_scheduler() -> None:
    made = ended()
    made["spec"]["runPolicy"] = {"schedulingPolicy": {"queue": "batch"}}
    assert row(made)["queue"] == "batch"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"completionTime": stamp(NOW + timedelta(days=400))}, NOW - timedelta(hours=1)),
        ({"completionTime": "2001-01-01T00:00:00Z"}, NOW - timedelta(hours=1)),
        ({"completionTime": 7, "startTime": stamp(NOW - timedelta(minutes=9))}, NOW - timedelta(minutes=9)),
        ({"conditions": [{"type": "Failed", "status": "True", "lastTransitionTime": stamp(NOW)}]}, NOW),
        ({}, NOW - timedelta(hours=1)),
    ],
)
def test_an_end_that_cannot_be_is_replaced_by_the_same_time_at_each_look(
    status: dict[str, Any], expected: datetime
) -> None:
    made = {**job(), "status": {"state": "Failed", **status}}
    assert row(made)["ended"] == row(made, now=NOW + timedelta(hours=1))["ended"] == expected


def test_a_failure_says_why_in_a_text_that_every_database_takes() -> None:
    made = ended(state="Failed")
    made["status"]["failure"] = {"reason": "OOMKilled\0", "message": "\ud800" + "é" * 2 * LONGEST_MESSAGE}
    found = row(made)
    assert (found["reason"], found["message"][:2], len(found["message"])) == ("OOMKilled", "?é", LONGEST_MESSAGE)


def test_only_jobs_that_run_for_long_have_days() -> None:
    made = {**job(), "status": {"state": "Running", "usage": USAGE}}
    found = day_record(made, PLACE, NOW)
    assert found is not None
    assert (found.day, found.amounts.gpu_seconds) == (NOW.replace(hour=0), 350 + 2 * 600)
    assert found.amounts.resources["nvidia.com/gpu"] == 300 + 2 * 600
    assert day_record(made, PLACE, NOW - timedelta(minutes=1)) is None, "it has not run for an hour"
    assert day_record({**job(), "status": {"state": "Running"}}, PLACE, NOW) is None, "without an account"
    assert day_record({**ended(), "status": {**ended()["status"], "usage": USAGE}}, PLACE, NOW) is None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ("completionTime", "startTime", "conditions", "retries", "usage", "trainerStatus", "failure", "reason")
USAGES = st.dictionaries(st.sampled_from([*USAGE]), ANYTHING)
STATUSES = st.fixed_dictionaries(
    {"state": st.sampled_from(["Succeeded", "Failed"])},
    optional={**dict.fromkeys(FIELDS, ANYTHING), "usage": ANYTHING | USAGES},
)


@given(status=STATUSES, spec=ANYTHING, marks=ANYTHING, kind=ANYTHING)
def test_any_status_gives_a_row_within_bounds(status: Any, spec: Any, marks: Any, kind: Any) -> None:
    made = {**job(labels=marks, annotations=marks), "status": status, "spec": spec, "kind": kind}
    found = row(made)
    assert found["result"] == status["state"]
    json.dumps(found["usage"], allow_nan=False)
    for name, value in found.items():
        if isinstance(value, str):
            assert "\0" not in value and len(value.encode()) <= 4 * LONGEST_MESSAGE, name
        elif isinstance(value, float):
            assert 0 <= value <= 1e24, name
        elif isinstance(value, int):
            assert 0 <= value < 2**31, name
    day_record(made, PLACE, NOW)


@given(status=ANYTHING)
def test_any_status_of_a_deleted_job_gives_a_row(status: Any) -> None:
    assert row({**job(), "status": status}, is_deleted=True)["uid"] == "uid-digits"
