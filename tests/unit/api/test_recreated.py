"""A job that is deleted and created again immediately, while objects of the first one still exist."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import belongs_to_predecessor
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import PREDECESSOR_REQUEUE
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import MXNET, mxjob
from support.recording_api import Api, context_of

TAKEN = ApiError(409, "AlreadyExists", "is there")
JOB = mxjob("digits").v1().workers(2).resource()


def owner(**changes: Any) -> dict[str, Any]:
    """The controller reference of an object that the job's predecessor owns."""
    reference = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MXJob",
        "name": "digits",
        "uid": "the-first",
        "controller": True,
    }
    return {**reference, **changes}


def old(**changes: Any) -> dict[str, Any]:
    return {"metadata": {"uid": "old", "ownerReferences": [owner(**changes)]}}


def seen(api: Api, status: dict[str, Any] | None = None) -> Outcome:
    return reconcile(context_of(api), {**JOB, "status": status or {}}, MXNET)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, True, id="deleted job of this name"),
        pytest.param({"apiVersion": "kubeflow.org/v1alpha1"}, True, id="in another version of the group"),
        pytest.param({"uid": JOB["metadata"]["uid"]}, False, id="the job itself"),
        pytest.param({"name": "another"}, False, id="another name"),
        pytest.param({"kind": "TFJob"}, False, id="another kind"),
        pytest.param({"apiVersion": "mpba.fbk.eu/v1"}, False, id="another group"),
        pytest.param({"controller": False}, False, id="not its controller"),
    ],
)
def test_whose_an_object_is(changes: dict[str, Any], expected: bool) -> None:
    assert belongs_to_predecessor(old(**changes), JOB) is expected


@pytest.mark.parametrize("terminating", [False, True])
def test_it_waits_and_the_status_says_for_what(terminating: bool) -> None:
    present = old()
    if terminating:
        present["metadata"]["deletionTimestamp"] = "2026-01-02T12:00:00Z"
    api = Api({"Pod": TAKEN, "Service": TAKEN}, present)
    outcome = seen(api)
    assert outcome.requeue_after == PREDECESSOR_REQUEUE
    assert api.status is not None
    assert (api.status["phase"], "failure" in api.status) == ("Creating", False)
    assert "deleted job of this name" in api.status["reason"]
    (event,) = api.events()
    assert event.startswith("FailedCreatePod: objects of the deleted job")


def test_the_same_again_writes_nothing() -> None:
    first = Api({"Pod": TAKEN, "Service": TAKEN}, old())
    seen(first)
    again = Api({"Pod": TAKEN, "Service": TAKEN}, old())
    assert seen(again, first.status).requeue_after == PREDECESSOR_REQUEUE
    assert (again.status, again.made) == (None, [])


def test_once_the_names_are_free_the_job_gets_its_pods_and_the_reason_goes() -> None:
    first = Api({"Pod": TAKEN, "Service": TAKEN}, old())
    seen(first)
    free = Api()
    seen(free, first.status)
    assert [body["kind"] for body in free.made].count("Pod") == 3
    assert free.status is not None
    assert free.status["reason"] == ""


def test_one_try_asks_for_few_of_many_names() -> None:
    asked = []

    class Counting(Api):
        def request(self, method: str, path: str, *arguments: Any, **named: Any) -> Any:
            asked.append((method, path))
            return super().request(method, path, *arguments, **named)

    job = mxjob("digits").v1().workers(500).resource()
    reconcile(context_of(Counting({"Pod": TAKEN, "Service": TAKEN}, old())), job, MXNET)
    assert len([1 for method, _ in asked if method == "POST"]) < 20


def test_a_strangers_object_is_waited_for_too_but_named() -> None:
    api = Api({"Pod": TAKEN, "Service": TAKEN}, old(kind="TFJob"))
    seen(api)
    assert api.status is not None
    assert "failure" not in api.status
    assert ", but to TFJob digits; the job waits until it is gone" in api.status["reason"]
