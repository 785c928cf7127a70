"""A job whose pods another operator has created: the reconcile that finds them adopts them and reports nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import MXNET, UID, mxjob
from support.recording_api import Api, context_of

PODS = ["digits-scheduler-0", "digits-worker-0", "digits-worker-1"]


class Cluster(Api):
    """The pods of the job exist, as training-operator creates them. ``denied`` is the answer to an Event."""

    def __init__(self, denied: ApiError | None = None) -> None:
        super().__init__({"Event": denied} if denied else {})

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method == "POST" and body["kind"] == "Pod":
            raise ApiError(409, "AlreadyExists", "is there")
        if "/pods/" not in path:
            return super().request(method, path, body, query, content_type)
        found = {
            "namespace": "default",
            "uid": path.rpartition("/")[2],
            "resourceVersion": "5",
            "ownerReferences": [{"uid": UID, "controller": True}],
        }
        if method == "PATCH":
            found |= {"resourceVersion": "6", "labels": body["metadata"]["labels"]}
        return {"metadata": found}


def adopted(api: Api) -> Outcome:
    return reconcile(context_of(api), mxjob("digits").v1().workers(2).resource(), MXNET)


def test_the_next_reconcile_writes_the_status() -> None:
    api = Cluster()
    outcome = adopted(api)
    assert (outcome.ok, outcome.changed, outcome.continues) == (True, True, False)
    assert (outcome.status, api.status) == (None, None), "it would call the pods missing"
    assert outcome.requeue_after
    assert outcome.requeue_after > 0
    assert {(pod, "6") for pod in PODS} <= set(outcome.wrote), "the cache has to observe them first"


def test_one_event_names_what_was_adopted() -> None:
    api = Cluster()
    message = adopted(api).message
    assert message == f"Adopted 3 objects of another operator: {', '.join(f'Pod/{pod}' for pod in PODS)}"
    assert api.events() == [f"Adopted: {message}"]


@pytest.mark.parametrize(
    ("denied", "warned"),
    [(None, False), (ApiError(403, "Forbidden", 'cannot create resource "events" in API group ""'), True)],
)
def test_an_event_that_the_operator_may_not_write_is_a_warning_in_its_log(
    denied: ApiError | None, warned: bool
) -> None:
    outcome = adopted(Cluster(denied))
    assert (outcome.ok, bool(outcome.warnings)) == (True, warned)
