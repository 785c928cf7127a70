"""The initial status and Event of a job: written by the reconcile that creates its pods, or deferred to the next one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.objects.services import build_all
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import RETRY_REQUEUE
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.initial_status import LATEST
from ansible_collections.dljob.operator.plugins.module_utils.shared import cache_snapshot
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import MXNET, UID, MXJob, Pod, mxjob, pods_of, stamp
from support.recording_api import Api, context_of


def owning(*pods: Pod) -> None:
    """Publish a cache snapshot with these pods of the job and nothing else."""
    owned = {"Pod": [pod.resource() for pod in pods], "Service": [], "ConfigMap": [], "Deployment": []}
    cache_snapshot.publish({UID: owned})


@pytest.fixture
def engine() -> Iterator[None]:
    owning()
    yield
    cache_snapshot.publish(None)


def fresh() -> MXJob:
    return mxjob().v1().workers(2)


def look(api: Api, job: MXJob | None = None, dry_run: bool = False) -> Outcome:
    return reconcile(context_of(api, dry_run), (job or fresh()).resource(), MXNET)


def test_the_reconcile_that_creates_the_pods_defers_the_initial_status(engine: None) -> None:
    api = Api()
    outcome = look(api)
    assert (api.status, api.kinds()) == (None, ["Pod", "Service"])
    assert (outcome.ok, outcome.changed, outcome.requeue_after) == (True, True, LATEST)


def test_it_makes_every_name_by_which_others_find_the_job(engine: None) -> None:
    api = Api()
    look(api)
    names = [body["metadata"]["name"] for body in api.made if body["kind"] == "Service"]
    assert sorted(names) == sorted(service["metadata"]["name"] for service in build_all(fresh().job(), MXNET))


def test_the_next_reconcile_reports_all_pods(engine: None) -> None:
    pods = pods_of(fresh().job())
    owning(*(pod.running() for pod in pods))
    api = Api()
    look(api)
    created, running = api.events()
    assert created.startswith(f"SuccessfulCreatePod: Created {len(pods)} of {len(pods)} pods: ")
    assert all(pod.resource()["metadata"]["name"] in created for pod in pods)
    assert running.startswith("MXJobRunning: ")


def test_the_next_reconcile_also_reports_finished_pods(engine: None) -> None:
    owning(*(pod.succeeded() for pod in pods_of(fresh().job())))
    api = Api()
    look(api)
    assert [event.split(":")[0] for event in api.events()] == ["SuccessfulCreatePod", "MXJobSucceeded"]


def test_once_there_is_a_status_the_event_has_been_written(engine: None) -> None:
    owning(*(pod.running() for pod in pods_of(fresh().job())))
    api = Api()
    look(api, fresh().status(phase="Creating", conditions=[{"type": "Created", "status": "True"}]))
    assert [event.split(":")[0] for event in api.events()] == ["MXJobRunning"]


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        pytest.param(fresh().run_policy(suspend=True), ["SuccessfulCreatePod", "MXJobSuspended"], id="suspended"),
        pytest.param(fresh().container("Worker", image="another:1"), ["SuccessfulCreatePod"], id="other pods wanted"),
    ],
)
def test_an_edit_between_the_two_reconciles_hides_no_created_pod(
    engine: None, edited: MXJob, expected: list[str]
) -> None:
    owning(*pods_of(fresh().job()))
    api = Api()
    look(api, edited)
    owning(*(pod.deleting() for pod in pods_of(fresh().job())))
    look(api, edited)
    assert [event.split(":")[0] for event in api.events()][: len(expected)] == expected


def test_an_invalid_edit_that_is_fixed_hides_no_created_pod(engine: None) -> None:
    owning(*(pod.running() for pod in pods_of(fresh().job())))
    api = Api()
    look(api, fresh().container("Worker", name="another"))
    assert [event.split(":")[0] for event in api.events()] == ["MXJobFailedValidation"]
    assert api.status is not None
    look(api, fresh().status(**api.status))
    assert [event.split(":")[0] for event in api.events()][1:] == ["SuccessfulCreatePod", "MXJobRunning"]


def test_the_next_reconcile_reports_even_if_the_pods_are_unchanged(engine: None) -> None:
    owning(*(pod.created(-7 + n) for n, pod in enumerate(pods_of(fresh().job()))))
    api = Api()
    look(api)
    assert api.status is not None
    assert [c["type"] for c in api.status["conditions"]] == ["Created"]
    assert api.status["startTime"] == stamp(-7), "the clock of activeDeadlineSeconds began with the first pod"


def test_the_first_status_includes_that_the_pods_run(engine: None) -> None:
    owning(*(pod.running() for pod in pods_of(fresh().job())))
    api = Api()
    look(api)
    assert api.status is not None
    assert [c["type"] for c in api.status["conditions"]] == ["Created", "Running"]


def test_it_is_deferred_only_once(engine: None) -> None:
    """The next reconcile finds a pod missing and creates another one."""
    owning(*pods_of(fresh().job())[1:])
    api = Api()
    look(api)
    assert "Pod" in api.kinds()
    assert api.status is not None


def test_it_is_not_deferred_by_a_reconcile_that_creates_nothing(engine: None) -> None:
    """The cache does not yet contain the pods of the earlier reconcile."""
    labels = {"app.kubernetes.io/managed-by": "dljob-operator", "dljob.operator/job-uid": UID}
    ours = {"metadata": {"uid": "pod", "labels": labels, "ownerReferences": [{"uid": UID, "controller": True}]}}
    taken = ApiError(409, "AlreadyExists", "is there")
    api = Api({"Pod": taken, "Service": taken}, ours)
    look(api)
    assert api.status is not None
    assert api.kinds() == ["Event"]


def test_a_dry_run_does_not_defer_it(engine: None) -> None:
    assert look(Api(), dry_run=True).requeue_after is None


def test_an_edit_before_it_that_makes_the_job_invalid_leaves_the_pods_alone(engine: None) -> None:
    owning(*(pod.created(-7) for pod in pods_of(fresh().job())))
    api = Api()
    look(api, fresh().container("Worker", name="another"))
    assert api.status is not None
    assert "pods of the last valid spec stay" in api.status["reason"]
    assert (api.status["phase"], api.status["startTime"], "failure" in api.status) == ("Creating", stamp(-7), False)


def test_a_job_that_is_invalid_from_the_start_fails_all_the_same(engine: None) -> None:
    api = Api()
    look(api, fresh().container("Worker", name="another"))
    assert api.status is not None
    assert api.status["state"] == "Failed"


def test_without_an_engine_it_is_not_deferred() -> None:
    api = Api()
    assert look(api).requeue_after is None
    assert api.status is not None
    assert api.status["phase"] == "Creating"
    assert api.kinds() == ["Event", "Pod", "Service"]


def test_a_job_with_a_status_is_reported_immediately(engine: None) -> None:
    api = Api()
    look(api, fresh().status(phase="Creating", reason="", conditions=[]))
    assert api.status is not None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(ApiError(403, "Forbidden", "exceeded quota"), "exceeded quota", id="not now"),
        pytest.param(ApiError(422, "Invalid", "no such thing"), "no such thing", id="never"),
    ],
)
def test_rejected_writes_are_reported_immediately(engine: None, answer: ApiError, expected: str) -> None:
    api = Api({"Pod": answer})
    look(api)
    assert api.status is not None
    assert expected in api.status["reason"]


def test_a_job_that_waits_for_one_of_its_own_pods_is_reported_immediately(engine: None) -> None:
    """The cache lacks a pod of the job that terminates, so the others are created and its name is still taken."""
    ending = {"metadata": {"uid": "pod", "ownerReferences": [{"uid": UID}], "deletionTimestamp": stamp()}}

    class OneTaken(Api):
        def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
            if method == "POST" and body["metadata"].get("name") == "digits-worker-0":
                raise ApiError(409, "AlreadyExists", "is there")
            return super().request(method, path, body, query, content_type)

    api = OneTaken(present=ending)
    look(api)
    assert "Pod" in api.kinds()
    assert api.status is not None
    assert api.status["reason"] == "waiting until Pod/digits-worker-0, which terminates, is gone"


def test_a_job_that_waits_for_its_names_is_reported_immediately(engine: None) -> None:
    """The names belong to objects of an earlier job that still terminate."""
    ending = {"metadata": {"uid": "another", "deletionTimestamp": "2026-01-02T12:00:00Z"}}
    api = Api({"Pod": ApiError(409, "AlreadyExists", "is there")}, ending)
    assert look(api).requeue_after == RETRY_REQUEUE
    assert api.status is not None
