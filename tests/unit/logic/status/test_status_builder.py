"""The status builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.status_builder import (
    MESSAGE_LIMIT,
    StatusBuilder,
    clip,
    is_finished,
    outcome,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.failure import Failure
from support.builders import MXJob, at, mxjob, pod_of, stamp

ENDED_BY_THE_PEER = {
    "conditions": [
        {"type": "Created", "status": "True"},
        {"type": "Running", "status": "False"},
        {"type": "Succeeded", "status": "True"},
    ]
}


def status_after(
    job: MXJob, report_state: Callable[[StatusBuilder], object], seconds: float = 0
) -> tuple[dict[str, Any] | None, list[str]]:
    report = StatusBuilder(job.job(), at(seconds))
    report_state(report)
    status = report.status()
    return None if status is None else dict(status), [e.reason for e in report.events]


# --- outcome


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        ({}, None),
        ({"state": "Running"}, None),
        ({"state": "Succeeded"}, "Succeeded"),
        ({"state": "Failed"}, "Failed"),
        (ENDED_BY_THE_PEER, "Succeeded"),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, "Failed"),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, None),
        ({"conditions": None}, None),
        ({**ENDED_BY_THE_PEER, "state": "Running"}, None),
    ],
)
def test_outcome(status: dict[str, Any], ended: str | None) -> None:
    assert outcome(status) == ended


@pytest.mark.parametrize("reason", ["FailedValidation", "RefusedByKubernetes"])
def test_a_job_that_never_ran_starts_after_an_edit(reason: str) -> None:
    status = {"state": "Failed", "observedGeneration": 1, "failure": {"reason": reason}}
    assert is_finished(status, 1, is_queued=False)
    assert not is_finished(status, 2, is_queued=False)


@pytest.mark.parametrize("status", [{"state": "Failed", "failure": {"reason": "Error"}}, {"state": "Succeeded"}])
def test_a_finished_job_stays_finished(status: dict[str, Any]) -> None:
    assert is_finished({**status, "observedGeneration": 1}, 2, is_queued=False)


# --- the new status


def test_an_unchanged_status_is_not_written() -> None:
    first, _ = status_after(mxjob(), lambda r: r.taken_up())
    assert first
    again, events = status_after(mxjob().status(**first), lambda r: r.taken_up(), seconds=60)
    assert (again, events) == (None, [])


def test_taken_up() -> None:
    status, events = status_after(mxjob("digits").option(RuntimeId="aycw"), lambda r: r.taken_up())
    assert status == {
        "runtimeId": "aycw",
        "observedGeneration": 1,
        "startTime": stamp(),
        "phase": "",
        "reason": "",
        "state": "Created",
        "conditions": [
            {
                "type": "Created",
                "status": "True",
                "reason": "MXJobCreated",
                "message": "MXJob digits is created.",
                "lastUpdateTime": stamp(),
                "lastTransitionTime": stamp(),
            }
        ],
    }
    assert events == []


@pytest.mark.parametrize(
    ("report_state", "v1", "v1alpha1"),
    [
        (StatusBuilder.created, "Created", "Running"),
        (StatusBuilder.running, "Running", "Running"),
        (StatusBuilder.suspended, "Suspended", "Running"),
        (StatusBuilder.respecified, "Restarting", "Running"),
        (StatusBuilder.succeeded, "Succeeded", "Succeeded"),
        (lambda r: r.failed(Failure("Error", "x")), "Failed", "Failed"),
    ],
)
def test_state(report_state: Callable[[StatusBuilder], object], v1: str, v1alpha1: str) -> None:
    for flavor, state in (("v1", v1), ("v1alpha1", v1alpha1), ("mpba", v1alpha1)):
        status, _ = status_after(mxjob().flavor(flavor), report_state)
        assert status
        assert status["state"] == state


def test_an_edit_restarts_only_what_has_begun() -> None:
    begun, events = status_after(mxjob(), lambda r: r.respecified(restarts=True))
    assert begun
    assert (begun["conditions"][0]["message"], events) == (
        "The spec of MXJob digits was changed: its replicas restart.",
        ["MXJobChanged"],
    )
    report = StatusBuilder(mxjob().v1().job(), at(0))
    report.respecified(restarts=False)
    status = report.status()
    assert status
    assert (status["state"], status["conditions"]) == ("Created", [])
    assert [event.message for event in report.events] == ["The spec of MXJob digits was changed."]


def test_events_come_with_a_change_only() -> None:
    status, events = status_after(mxjob(), lambda r: r.running())
    assert events == ["MXJobRunning"]
    assert status
    assert status_after(mxjob().status(**status), lambda r: r.running()) == (None, [])


def test_succeeded() -> None:
    held = {"reason": "waits", "failure": {"reason": "x"}, "startTime": stamp(-5)}
    status, events = status_after(mxjob("digits").status(**held), lambda r: r.succeeded(), seconds=9)
    assert status
    assert (status["completionTime"], status["reason"], status["startTime"]) == (stamp(9), "", stamp(-5))
    assert "failure" not in status
    assert status["conditions"][-1]["message"] == "MXJob digits is successfully completed."
    assert events == ["MXJobSucceeded"]


def test_failed() -> None:
    failure = Failure("OOMKilled", "container mxnet exited", "digits-worker-0", "mxnet", 137)
    status, events = status_after(mxjob(), lambda r: r.failed(failure))
    assert status
    assert status["reason"] == "OOMKilled: container mxnet exited"
    assert status["failure"] == {
        "pod": "digits-worker-0",
        "container": "mxnet",
        "exitCode": 137,
        "reason": "OOMKilled",
        "message": "container mxnet exited",
    }
    assert (status["conditions"][-1]["reason"], events) == ("MXJobFailed", ["MXJobFailed"])


def test_a_failure_keeps_the_end_of_the_log() -> None:
    words = "\n".join(f"line {n:04}" for n in range(1000))
    status, _ = status_after(mxjob(), lambda r: r.failed(Failure("Error", "it exited", "p", "mxnet", 1, words)))
    assert status
    lines = status["failure"]["message"].splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("line 0796", "line 0999", 204)
    assert status["reason"] == "Error: it exited"


def test_a_failure_without_a_pod_names_none() -> None:
    status, _ = status_after(mxjob(), lambda r: r.failed(Failure("DeadlineExceeded", "too long")))
    assert status
    assert status["failure"] == {"reason": "DeadlineExceeded", "message": "too long"}


def test_an_exit_code_of_0_is_reported() -> None:
    status, _ = status_after(mxjob(), lambda r: r.failed(Failure("Error", "x", "p", "c", 0)))
    assert status
    assert status["failure"]["exitCode"] == 0


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        (1, "restarts 1 failed replicas: digits-worker-0; why"),
        (3, "restarts 3 failed replicas: digits-worker-0, digits-worker-1, digits-worker-2; why"),
        (4, "restarts 4 failed replicas: digits-worker-0, digits-worker-1, digits-worker-2 ...; why"),
    ],
)
def test_restarting(failed: int, said: str) -> None:
    job = mxjob("digits").workers(4).job()
    report = StatusBuilder(job, at(0))
    failures = [Failure("Error", "why"), Failure("Error", "why the next one failed")]
    report.restarting([pod_of(job, "worker", i).failed(1).view() for i in range(failed)], failures)
    (event,) = report.events
    assert (event.type, event.reason, event.message) == ("Warning", "MXJobRestarting", f"MXJob digits {said}")
    assert report.conditions[-1]["message"] == event.message


def test_suspended_and_resumed() -> None:
    started, _ = status_after(mxjob(), StatusBuilder.taken_up)
    assert started
    running, _ = status_after(mxjob().status(**started), StatusBuilder.running)
    assert running
    suspended, events = status_after(mxjob().status(**running, completed={"worker": "0"}), lambda r: r.suspended(), 10)
    assert suspended
    assert [(c["type"], c["status"]) for c in suspended["conditions"]] == [
        ("Created", "True"),
        ("Running", "False"),
        ("Suspended", "True"),
    ]
    assert "completed" not in suspended, "all of them start together again"
    assert events == ["MXJobSuspended"]
    resumed, events = status_after(mxjob().status(**suspended), lambda r: r.taken_up(), 20)
    assert resumed
    assert resumed["startTime"] == stamp(20), "the clock of a suspended job stands still"
    assert resumed["conditions"][-1]["type"] == "Suspended"
    assert (resumed["conditions"][-1]["status"], resumed["conditions"][-1]["reason"]) == ("False", "MXJobResumed")
    assert events == ["MXJobResumed"]


def test_a_job_that_is_suspended_from_the_start_has_not_started() -> None:
    status, _ = status_after(mxjob(), lambda r: r.suspended())
    assert status
    assert "startTime" not in status
    assert [c["type"] for c in status["conditions"]] == ["Created", "Suspended"]


def test_progress_of_another_spec_is_forgotten() -> None:
    held = {"specHash": "old", "retries": {"worker-0": 2}, "completed": {"worker": "1"}}
    report = StatusBuilder(mxjob().status(**held).job(), at(0))
    assert report.forget_progress("new")
    assert not {"retries", "completed"} & set(report.status() or {})


@pytest.mark.parametrize("known", [{}, {"specHash": "same"}])
def test_progress_of_this_spec_is_kept(known: dict[str, str]) -> None:
    report = StatusBuilder(mxjob().status(**known, retries={"worker-0": 2}).job(), at(0))
    assert not report.forget_progress("same")
    assert (report.status() or {}).get("retries", {"worker-0": 2}) == {"worker-0": 2}


@pytest.mark.parametrize(("known", "changed"), [("old", True), ("new", False)])
def test_a_refused_job_that_starts_again_forgets_the_progress_of_another_spec(known: str, changed: bool) -> None:
    refused = {"state": "Failed", "observedGeneration": 0, "failure": {"reason": "RefusedByKubernetes"}}
    report = StatusBuilder(mxjob().status(**refused, specHash=known, completed={"worker": "0"}).job(), at(0))
    assert report.forget_progress("new") is changed


def test_empty_progress_is_left_out() -> None:
    status, _ = status_after(
        mxjob().status(retries={"a-0": 1}), lambda r: r.progress(({}, {}), {"worker": set()}, 0, {})
    )
    assert status
    assert not {"retries", "ignoredRetries", "batchJobs", "completed"} & set(status)


def test_a_fixed_job_starts_with_an_empty_status() -> None:
    held = {"state": "Failed", "observedGeneration": 0, "failure": {"reason": "FailedValidation"}, "phase": "Failed"}
    status, _ = status_after(mxjob().status(**held, completionTime=stamp(-9), retries={"x": 1}), lambda r: r.taken_up())
    assert status
    assert (status["phase"], status["state"]) == ("", "Created")
    assert not {"failure", "completionTime", "retries"} & set(status)


def test_a_fixed_job_keeps_its_attempt_whose_pods_may_still_be_there() -> None:
    held = {"state": "Failed", "observedGeneration": 0, "failure": {"reason": "RefusedByKubernetes"}, "attempt": 1}
    status, _ = status_after(mxjob().status(**held), lambda r: r.suspended())
    assert status
    assert (status["state"], status["attempt"]) == ("Suspended", 1)


def test_long_messages_fit_an_event() -> None:
    assert clip("x" * MESSAGE_LIMIT) == "x" * MESSAGE_LIMIT
    assert len(clip("x" * 5000)) == MESSAGE_LIMIT == 1024, "the API server's own limit"
    report = StatusBuilder(mxjob().job(), at(0))
    report.failed(Failure("Error", "x" * 5000))
    status = report.status()
    assert status
    assert len(status["reason"]) == len(status["failure"]["message"]) == MESSAGE_LIMIT
    assert len(report.events[0].message) == MESSAGE_LIMIT
    report.restarting_all([Failure("Error", "x" * 5000)])
    status = report.status()
    assert status
    lengths = {one["type"]: len(one["message"]) for one in status["conditions"]}
    assert (lengths["Failed"], lengths["Restarting"]) == (MESSAGE_LIMIT, MESSAGE_LIMIT)
