"""The metrics of the engine."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from prometheus_client import generate_latest

from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.serving.metrics import Metrics

KIND = "kubeflow.org/v1 MXJob"
LABELS = {"namespace": "lab", "kind": KIND}
BEGAN = datetime.datetime(2026, 5, 4, 12, 0, 0, 900_000, tzinfo=datetime.UTC)
BEFORE, AFTER = "2026-05-04T11:59:59Z", "2026-05-04T12:00:00Z"


def job(state: str | None = None, retries: Any = None, created: str = AFTER) -> dict[str, Any]:
    status: dict[str, Any] = {} if state is None else {"state": state}
    if retries is not None:
        status["retries"] = retries
    return {"metadata": {"namespace": "lab", "name": "a", "uid": "a", "creationTimestamp": created}, "status": status}


def ended_elsewhere(type_: str) -> dict[str, Any]:
    conditions = ["odd", {"type": "Created", "status": "True"}, {"type": "Failed", "status": "False"}]
    return {**job(), "status": {"conditions": [*conditions, {"type": type_, "status": "True"}]}}


def stalls(status: str) -> dict[str, Any]:
    return {**job(), "status": {"state": "Running", "conditions": [{"type": "Stalled", "status": status}]}}


def counted(*changes: Change) -> dict[str, float]:
    metrics = Metrics(lambda: BEGAN)
    for change in changes:
        metrics.job_changed(KIND, change)
    names = ("jobs_created", "jobs_deleted", "jobs_succeeded", "jobs_failed", "job_restarts", "job_stalls")
    values = {name: metrics.registry.get_sample_value(f"dljob_{name}_total", LABELS) for name in names}
    return {name: value for name, value in values.items() if value}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([Change(None, job())], {"jobs_created": 1}),
        # there before: an operator that starts again, or a list after a pause
        ([Change(None, job(created=BEFORE))], {}),
        ([Change(None, job("Succeeded", created=BEFORE))], {}),
        ([Change(job(), None)], {"jobs_deleted": 1}),
        ([Change(job("Running"), job("Succeeded"))], {"jobs_succeeded": 1}),
        ([Change(job("Running"), job("Failed"))], {"jobs_failed": 1}),
        ([Change(job("Succeeded"), job("Succeeded"))], {}),
        ([Change(job(), job("Running"))], {}),
        # it ended under training-operator, which writes no state, and this operator has now recorded it
        ([Change(ended_elsewhere("Succeeded"), job("Succeeded"))], {}),
        ([Change(ended_elsewhere("Failed"), job("Failed"))], {}),
        ([Change(ended_elsewhere("Running"), job("Failed"))], {"jobs_failed": 1}),
        ([Change(job(), ended_elsewhere("Succeeded"))], {"jobs_succeeded": 1}),
        # over before it was seen at all
        ([Change(None, job("Failed"))], {"jobs_created": 1, "jobs_failed": 1}),
        ([Change(job("Running"), stalls("True")), Change(stalls("True"), stalls("True"))], {"job_stalls": 1}),
        ([Change(stalls("True"), stalls("False")), Change(stalls("False"), stalls("True"))], {"job_stalls": 1}),
        ([Change(job("Running", {"worker-0": 1}), job("Running", {"worker-0": 2, "job": 1}))], {"job_restarts": 2}),
        ([Change(job("Running", {"worker-0": 1}), job("Running", {"worker-0": 2}))], {"job_restarts": 1}),
        ([Change(job("Running", "odd"), job("Running", {"worker-0": 1, "worker-1": "odd"}))], {"job_restarts": 1}),
        # the counts begin anew with a changed spec
        ([Change(job("Running", {"worker-0": 3}), job("Running", {}))], {}),
        (
            [
                Change(
                    job("Running", "odd"), {"metadata": {"namespace": "lab", "name": "a", "uid": "a"}, "status": None}
                )
            ],
            {},
        ),
    ],
)
def test_what_becomes_of_jobs(changes: list[Change], expected: dict[str, float]) -> None:
    assert counted(*changes) == expected


def test_jobs_count_under_training_operators_names_too() -> None:
    metrics = Metrics(lambda: BEGAN, {KIND: "mxnet"})
    metrics.job_changed(KIND, Change(None, job()))
    metrics.job_changed(KIND, Change(job("Running"), job("Succeeded")))
    metrics.job_changed(KIND, Change(job("Running"), job("Failed", {"worker-0": 2})))
    metrics.job_changed(KIND, Change(job(), None))
    metrics.job_changed("example.com/v1 EchoJob", Change(job(), None))
    value = metrics.registry.get_sample_value
    for name, times in {"created": 1, "successful": 1, "failed": 1, "deleted": 1, "restarted": 2}.items():
        labels = {"job_namespace": "lab", "framework": "mxnet"}
        assert value(f"training_operator_jobs_{name}_total", labels) == times, name
    assert value("dljob_jobs_created_total", LABELS) == 1
    other = {"job_namespace": "lab", "framework": "example.com/v1 EchoJob"}
    assert value("training_operator_jobs_deleted_total", other) == 1


def test_they_name_namespaces_kinds_and_frameworks_and_no_job() -> None:
    metrics = Metrics(lambda: BEGAN, {KIND: "mxnet"})
    secret = {**job("Failed", {"secret-worker-0": 1}), "spec": {"secret": "secret"}}
    secret["metadata"] |= {"name": "secret", "uid": "secret", "labels": {"secret": "secret"}}
    for change in (Change(None, secret), Change(job("Running"), secret), Change(secret, None)):
        metrics.job_changed(KIND, change)
    metrics.job_changed(KIND, Change(None, secret))
    metrics.watch(lambda: 1)
    metrics.reconciled(KIND, ok=False)
    metrics.ran(KIND, 1.0)
    text = generate_latest(metrics.registry).decode()
    assert "secret" not in text
    labels = {label for metric in metrics.registry.collect() for sample in metric.samples for label in sample.labels}
    assert labels == {"namespace", "kind", "state", "result", "le", "job_namespace", "framework"}


def test_only_on_request() -> None:
    metrics = Metrics(lambda: BEGAN)
    metrics.job_changed(KIND, Change(None, job()))
    assert not any(found.name.startswith("training_operator") for found in metrics.registry.collect())


def test_a_job_without_restarts_has_no_count_of_them() -> None:
    metrics = Metrics(lambda: BEGAN)
    metrics.job_changed(KIND, Change(job(), job("Running")))
    assert metrics.registry.get_sample_value("dljob_job_restarts_total", LABELS) is None


def test_durations_are_counted_from_hundredths_of_a_second_to_the_default_time_limit() -> None:
    metrics = Metrics()
    for seconds in (0.005, 0.02, 100.0, 301.0):
        metrics.ran(KIND, seconds)
    samples = [sample for family in metrics.registry.collect() for sample in family.samples]
    found = {one.labels["le"]: one.value for one in samples if one.name == "dljob_run_seconds_bucket"}
    bounds = ("0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0", "30.0", "60.0")
    assert found == dict(zip(bounds, [1, 2, *[2] * 10], strict=True)) | {"300.0": 3, "+Inf": 4}


def test_what_there_is_is_counted_at_each_look() -> None:
    metrics = Metrics()
    jobs = [job("Running"), job("Running"), job()]
    for number, one in enumerate(jobs):
        one["metadata"]["uid"] = str(number)
        metrics.job_changed(KIND, Change(None, one))
    waiting = [3]
    metrics.watch(lambda: waiting[0])
    assert metrics.registry.get_sample_value("dljob_jobs", {**LABELS, "state": "Running"}) == 2
    assert metrics.registry.get_sample_value("dljob_jobs", {**LABELS, "state": ""}) == 1
    metrics.job_changed(KIND, Change(jobs[0], None))
    waiting[0] = 0
    assert metrics.registry.get_sample_value("dljob_jobs", {**LABELS, "state": "Running"}) == 1
    assert metrics.registry.get_sample_value("dljob_queue_jobs") == 0
    metrics.job_changed(KIND, Change(jobs[1], jobs[1] | {"status": {"state": "Failed"}}))
    found = {
        state: metrics.registry.get_sample_value("dljob_jobs", {**LABELS, "state": state})
        for state in ("", "Running", "Failed")
    }
    assert found == {"": 1, "Running": None, "Failed": 1}


def test_jobs_that_wait_are_counted_by_cause() -> None:
    metrics = Metrics()
    metrics.watch(lambda: 0)
    for number, reason in enumerate(["exceeded quota: a", "exceeded quota: b", "", "Waits in the queue team"]):
        one = job("Running")
        one["metadata"]["uid"], one["status"]["reason"] = str(number), reason
        metrics.job_changed(KIND, Change(None, one))

    def waiting(cause: str) -> float | None:
        return metrics.registry.get_sample_value("dljob_jobs_waiting", {**LABELS, "cause": cause})

    assert [waiting(cause) for cause in ("Quota", "Queue", "Other")] == [2, 1, None]
    assert metrics.registry.get_sample_value("dljob_jobs", {**LABELS, "state": "Running"}) == 4


def test_a_run_for_many_jobs_is_one_run() -> None:
    metrics = Metrics()
    metrics.ran(KIND, 0.02)
    for ok in (True, True, False):
        metrics.reconciled(KIND, ok=ok)
    value = metrics.registry.get_sample_value
    assert value("dljob_runs_total", {"kind": KIND}) == 1
    assert value("dljob_run_seconds_sum", {"kind": KIND}) == 0.02
    assert value("dljob_reconciles_total", {"kind": KIND, "result": "ok"}) == 2
    assert value("dljob_reconciles_total", {"kind": KIND, "result": "failed"}) == 1


def test_a_standby_that_takes_over_counts_no_job_that_its_leader_has_counted() -> None:
    times = [BEGAN, BEGAN + datetime.timedelta(seconds=1)]
    metrics = Metrics(lambda: times[0])
    times.pop(0)
    metrics.watch(lambda: 0)
    metrics.job_changed(KIND, Change(None, job("Succeeded", created=AFTER)))
    assert metrics.registry.get_sample_value("dljob_jobs_created_total", LABELS) is None
    metrics.job_changed(KIND, Change(None, job(created="2026-05-04T12:00:01Z")))
    assert metrics.registry.get_sample_value("dljob_jobs_created_total", LABELS) == 1
