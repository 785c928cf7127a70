"""The conditions of `manageStatus: true`, in the status of a job that its role writes too."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.fake_kube_api import ECHO_JOBS, FakeKubeApi

from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import ApiConnectionError
from dljob_operator.engine.outcome import JobOutcome
from dljob_operator.engine.status import write_conditions

OK, FAILED = JobOutcome(True), JobOutcome(False, "cannot reach the store")


@pytest.fixture
def api() -> FakeKubeApi:
    return FakeKubeApi()


def conditions(api: FakeKubeApi) -> dict[str, Any]:
    return {condition["type"]: condition for condition in api.job()["status"]["conditions"]}


@pytest.mark.parametrize("status", [{}, {"status": {}}, {"status": {"conditions": None}}])
def test_a_job_gets_its_first_conditions(api: FakeKubeApi, status: dict[str, Any]) -> None:
    job = api.add_job(**status)
    write_conditions(api, ECHO_JOBS, job, OK, {"ok": 3, "changed": 1})
    found = conditions(api)
    assert {name: one["status"] for name, one in found.items()} == {
        "Running": "True",
        "Failure": "False",
        "Successful": "True",
    }
    result = found["Running"]["ansibleResult"]
    assert (result["ok"], result["changed"]) == (3, 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", result["completion"])


def test_a_failed_run_is_reported_with_its_message(api: FakeKubeApi) -> None:
    write_conditions(api, ECHO_JOBS, api.add_job(), FAILED, {"failures": 1})
    failure = conditions(api)["Failure"]
    assert (failure["status"], failure["message"]) == ("True", "cannot reach the store")
    assert failure["ansibleResult"]["failures"] == 1


def test_what_the_role_has_written_meanwhile_stays(api: FakeKubeApi) -> None:
    before_the_run = api.add_job()
    ready = {"type": "Ready", "status": "True"}
    api.add_job(status={"state": "Running", "conditions": [ready]})
    write_conditions(api, ECHO_JOBS, before_the_run, OK, {})
    assert api.job()["status"]["state"] == "Running"
    assert conditions(api)["Ready"] == ready
    assert len(conditions(api)) == 4


def test_a_new_job_of_the_name_does_not_get_the_conditions_of_the_deleted_one(api: FakeKubeApi) -> None:
    deleted = api.add_job(uid="1")
    api.add_job(uid="2")
    write_conditions(api, ECHO_JOBS, deleted, FAILED, {})
    assert api.requests() == ["GET echojobs"]
    assert "status" not in api.job()


def test_only_the_status_is_written(api: FakeKubeApi) -> None:
    write_conditions(api, ECHO_JOBS, api.add_job(spec={"say": "hello"}), OK, {})
    assert api.requests() == ["GET echojobs", "PATCH echojobs/status"]
    assert api.job()["spec"] == {"say": "hello"}


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_job_that_was_deleted_meanwhile_is_no_error(api: FakeKubeApi, method: str) -> None:
    job = api.add_job()
    api.fail(method, 404)
    write_conditions(api, ECHO_JOBS, job, OK, {})


@pytest.mark.parametrize(("status", "error"), [(409, ApiError), (500, ApiError), (0, ApiConnectionError)])
def test_other_errors_are_those_of_the_caller(api: FakeKubeApi, status: int, error: type[Exception]) -> None:
    job = api.add_job()
    api.fail("PATCH", status)
    with pytest.raises(error):
        write_conditions(api, ECHO_JOBS, job, OK, {})


def test_a_cluster_scoped_job_has_a_path_without_a_namespace() -> None:
    paths: list[str] = []
    job = {"metadata": {"name": "digits", "uid": "1"}}

    class Api(FakeKubeApi):
        def request(self, method: str, path: str, *_: Any, **__: Any) -> dict[str, Any]:
            paths.append(f"{method} {path}")
            return job

    resource = ApiResource("/apis/example.com/v1", "echojobs", namespaced=False)
    write_conditions(Api(), resource, job, OK, {})
    path = "/apis/example.com/v1/echojobs/digits"
    assert paths == [f"GET {path}", f"PATCH {path}/status"]
