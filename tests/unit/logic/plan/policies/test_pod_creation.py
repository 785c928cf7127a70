"""A batch Job without a pod: what its controller says, when that is read, and what follows for the job."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe.observed_state import build_observed_state
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import pending_timeout, pod_creation
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import FIRST_CONTAINER
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from support.builders import MPI, UID, Resource, at, manifest_of, mpijob, stamp
from support.fake_api_server import pod_quota
from support.fake_cluster import FakeCluster

QUOTA = "exceeded quota: one, requested: pods=1, used: pods=1, limited: pods=1"
DENIED = f'Error creating: pods "pi-launcher-8hzkw" is forbidden: {QUOTA}'
SAID = f"FailedCreate: Error creating: its pod is forbidden: {QUOTA}"


def event(reason: str, message: str = "", seconds: float = 0, **times: Any) -> Resource:
    return {"reason": reason, "message": message, **(times or {"lastTimestamp": stamp(seconds)})}


def launcher(*pods: Resource, status: Resource | None = None, **metadata: Any) -> Observed:
    """What is observed of a launcher whose batch Job has these pods."""
    parsed = parse_job(mpijob(), MPI)
    own = {**manifest_of(parsed, "launcher", framework=MPI)["metadata"], "uid": "the-job", "creationTimestamp": stamp()}
    job = {"kind": "Job", "metadata": {**own, **metadata}, "status": status or {}}
    return build_observed_state(Owner("default", UID), FIRST_CONTAINER, pods, (), {"Job": [job]})


def pod(phase: str, seconds: float = 1, code: int = 1) -> Resource:
    ended = {"exitCode": code, "reason": "Error", "finishedAt": stamp(seconds + 1)}
    state = {"terminated": ended} if phase == "Failed" else {"running": {}}
    return {
        "metadata": {
            "name": "pi-launcher-a",
            "uid": "uid-of-a",
            "namespace": "default",
            "creationTimestamp": stamp(seconds),
            "ownerReferences": [{"kind": "Job", "uid": "the-job", "controller": True}],
        },
        "spec": {"containers": [{"name": "main"}], "restartPolicy": "Never"},
        "status": {"phase": phase, "containerStatuses": [{"name": "main", "restartCount": 0, "state": state}]},
    }


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], ""),
        ([event("Suspended", "x")], ""),
        ([event("FailedCreate", DENIED)], SAID),
        (
            [event("FailedCreate", "Error creating: admission webhook")],
            "FailedCreate: Error creating: admission webhook",
        ),
        ([event("FailedCreate")], "FailedCreate"),
        ([event("FailedCreate", "old", 1), event("FailedCreate", "new", 2)], "FailedCreate: new"),
        ([event("FailedCreate", "old", 1), event("SuccessfulCreate", "Created pod: a", 2)], ""),
        ([event("SuccessfulCreate", "Created pod: a", 1), event("FailedCreate", "next", 2)], "FailedCreate: next"),
        ([event("FailedCreate", "a", eventTime="2026-01-01T00:00:09.123456Z", lastTimestamp=None)], "FailedCreate: a"),
        (
            [
                event("FailedCreate", "a", eventTime=stamp(1), series={"lastObservedTime": stamp(9)}),
                event("SuccessfulCreate", "b", 5),
            ],
            "FailedCreate: a",
        ),
    ],
)
def test_what_the_controller_says(events: list[Resource], said: str) -> None:
    assert pod_creation.cause(events) == said
    assert pod_creation.cause(list(reversed(events))) == said


LIMIT = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}


@pytest.mark.parametrize(
    ("observed", "seconds", "read", "check"),
    [
        pytest.param(launcher(), 1, False, 4, id="just created"),
        pytest.param(launcher(), 5, True, 5, id="for longer than usual"),
        pytest.param(launcher(), 40, True, 20, id="for long"),
        pytest.param(launcher(), 4000, True, 60, id="for ever"),
        pytest.param(launcher(creationTimestamp=stamp(100)), 0, False, 5, id="by a clock that is behind"),
        pytest.param(launcher(pod("Pending")), 60, False, None, id="a pod that is pending"),
        pytest.param(launcher(pod("Running")), 60, False, None, id="a pod that runs"),
        pytest.param(launcher(pod("Failed")), 4, False, 3, id="its pod has just failed"),
        pytest.param(launcher(pod("Failed")), 12, True, 5, id="the next pod is late"),
        pytest.param(launcher(status={"conditions": [LIMIT]}), 60, False, None, id="it has ended"),
        pytest.param(launcher(deletionTimestamp=stamp(1)), 60, False, None, id="it is being deleted"),
    ],
)
def test_when_the_events_are_read(observed: Observed, seconds: float, read: bool, check: float | None) -> None:
    job = parse_job(mpijob(), MPI)
    assert bool(pod_creation.lacking(job, observed, at(seconds))) == read
    assert pod_creation.next_check(observed, at(seconds)) == check


def test_they_are_not_read_for_a_job_that_wants_no_pod() -> None:
    suspended = parse_job(mpijob(runPolicy={"suspend": True}), MPI)
    ended = parse_job({**mpijob(), "status": {"state": "Failed", "observedGeneration": 1}}, MPI)
    for job in (suspended, ended):
        assert pod_creation.lacking(job, launcher(), at(60)) == ()


def test_what_is_known_of_a_batch_job_without_a_pod() -> None:
    (found,) = launcher().pods
    assert (found.has_pod, found.pod_name, found.subject) == (False, "", "batch Job pi-launcher")
    assert (found.pending_since, found.lacks_pod_since, found.waiting) == ("", stamp(), "")
    (found,) = launcher(status={"conditions": [{"type": "Suspended", "status": "True"}]}).pods
    assert found.waiting == "somebody has suspended it"
    (found,) = launcher(pod("Running")).pods
    assert (found.has_pod, found.pod_name, found.subject) == (True, "pi-launcher-a", "pod pi-launcher-a")


@pytest.mark.parametrize(
    ("observed", "before", "cause", "waiting"),
    [
        (launcher(), "", SAID, SAID),
        (launcher(), "", "", pod_creation.UNKNOWN),
        (launcher(), f"batch Job pi-launcher: {SAID}", SAID.replace("used: pods=1", "used: pods=3"), SAID),
        (launcher(), f"batch Job pi-launcher: {SAID}", "FailedCreate: another", "FailedCreate: another"),
        (launcher(pod("Failed")), "", "", ""),
        (launcher(pod("Failed")), f"batch Job pi-launcher: {SAID}", SAID.replace("pods=1, l", "pods=2, l"), SAID),
    ],
)
def test_the_cause_in_the_state(observed: Observed, before: str, cause: str, waiting: str) -> None:
    job = parse_job({**mpijob(), "status": {"reason": before}}, MPI)
    (found,) = pod_creation.explained(job, observed, {"the-job": cause, "else": "x"}).pods
    assert found.waiting == waiting
    assert pod_creation.explained(job, observed, {"else": "x"}) == observed


def test_the_time_without_a_pod_does_not_count_as_pending() -> None:
    job = parse_job(mpijob(runPolicy={"pendingTimeoutSeconds": 60}), MPI)
    assert pending_timeout.find_timeout(job, launcher(), at(600)) is None
    found = pending_timeout.find_timeout(job, launcher(pod("Pending", 500)), at(600))
    assert found is not None
    assert found.message.startswith("pod pi-launcher-a is pending")


def quota_of(pods: int, **run_policy: Any) -> FakeCluster:
    fake_cluster = FakeCluster(mpijob(worker=1, runPolicy=run_policy), MPI)
    fake_cluster.api.admission.append(pod_quota(pods))
    return fake_cluster


def test_a_launcher_whose_pod_a_quota_denies() -> None:
    fake_cluster = quota_of(1, pendingTimeoutSeconds=60)
    fake_cluster.settle()
    assert fake_cluster.replicas() == ["worker-0"]
    (created,) = [one.message for one in fake_cluster.events if one.reason == "SuccessfulCreatePod"]
    assert created == "Created 1 of 2 pods: pi-worker-0; the pod of batch Job pi-launcher follows"
    fake_cluster.run_all()
    for _ in range(3):
        fake_cluster.advance(60)
        fake_cluster.step()
    assert fake_cluster.status["state"] == "Created"
    assert fake_cluster.status["replicaStatuses"]["Launcher"].get("active") is None


def test_the_first_event_of_a_job_whose_status_was_deferred_names_the_launchers_pod() -> None:
    fake_cluster = FakeCluster(mpijob(worker=1), MPI)
    fake_cluster.step(status_gets_lost=True)
    fake_cluster.settle()
    (created,) = [one.message for one in fake_cluster.events if one.reason == "SuccessfulCreatePod"]
    assert created == "Created 2 of 2 pods: pi-worker-0, pi-launcher-0"
