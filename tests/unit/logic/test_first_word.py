"""The first status of a job: with the look that makes its pods, or with the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import snapshot
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import LATER, Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.api.transport import ApiError, Transport
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.first_word import LATEST
from builders import MXNET, NOW, UID, Pod, mxjob, pods_of

Resource = dict[str, Any]


class Api(Transport):
    """Takes every write, keeps it by kind of request, and lists nothing. ``refuses`` a kind with an answer of its own."""

    def __init__(self, refuses: Mapping[str, ApiError] | None = None, present: Resource | None = None) -> None:
        self.status: Resource | None = None
        self.made: list[Resource] = []
        self._refuses = dict(refuses or {})
        self._present = present or {}

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method == "GET":
            return self._present or {"metadata": {}, "items": []}
        if method == "PATCH" and path.endswith("/status"):
            self.status = next(part["value"] for part in body if part["path"] == "/status")
            return {"metadata": {"uid": UID, "resourceVersion": "9"}}
        assert method == "POST"
        if body["kind"] in self._refuses:
            raise self._refuses[body["kind"]]
        self.made.append(body)
        return {"metadata": {"uid": f"uid-{len(self.made)}", "resourceVersion": str(len(self.made))}}

    def kinds(self) -> list[str]:
        return sorted({body["kind"] for body in self.made})


@pytest.fixture
def engine() -> Iterator[None]:
    """An engine watches, and has seen nothing that the job owns."""
    snapshot.publish({UID: {"Pod": [], "Service": [], "ConfigMap": [], "Deployment": []}})
    yield
    snapshot.publish(None)


def look(api: Api, **status: Any) -> Outcome:
    job = mxjob().v1().workers(2)
    return reconcile(api, (job.status(**status) if status else job).resource(), MXNET, now=NOW)


def test_the_look_that_makes_the_pods_leaves_it_to_the_next_one(engine: None) -> None:
    api = Api()
    outcome = look(api)
    assert (api.status, api.kinds()) == (None, ["Event", "Pod", "Service"])
    assert (outcome.ok, outcome.changed, outcome.requeue_after) == (True, True, LATEST)


def test_the_next_look_tells_all_of_it_even_if_nothing_has_become_of_the_pods(engine: None) -> None:
    job = mxjob().v1().workers(2).job()
    pods = [pod.resource() for pod in pods_of(job)]
    snapshot.publish({UID: {"Pod": pods, "Service": [], "ConfigMap": [], "Deployment": []}})
    api = Api()
    look(api)
    assert api.status is not None
    assert [c["type"] for c in api.status["conditions"]] == ["Created"]


def test_of_pods_that_run_by_then_it_tells_in_the_same_status(engine: None) -> None:
    pods = [Pod(pod.resource()).running().resource() for pod in pods_of(mxjob().v1().workers(2).job())]
    snapshot.publish({UID: {"Pod": pods, "Service": [], "ConfigMap": [], "Deployment": []}})
    api = Api()
    look(api)
    assert api.status is not None
    assert [c["type"] for c in api.status["conditions"]] == ["Created", "Running"]


def test_without_an_engine_there_may_be_no_next_look() -> None:
    api = Api()
    assert look(api).requeue_after is None
    assert api.status is not None
    assert api.status["phase"] == "Creating"


def test_a_job_that_was_told_of_before_is_told_of_at_once(engine: None) -> None:
    api = Api()
    look(api, phase="Creating", reason="", conditions=[])
    assert api.status is not None


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(ApiError(403, "Forbidden", "exceeded quota"), "exceeded quota", id="not now"),
        pytest.param(ApiError(422, "Invalid", "no such thing"), "no such thing", id="never"),
    ],
)
def test_what_kubernetes_would_not_do_is_told_at_once(engine: None, answer: ApiError, told: str) -> None:
    api = Api({"Pod": answer})
    look(api)
    assert api.status is not None
    assert told in api.status["reason"]


def test_a_job_that_waits_for_its_names_is_told_of_at_once(engine: None) -> None:
    """Those of an earlier job that takes its time to end."""
    ending = {"metadata": {"uid": "another", "deletionTimestamp": "2026-01-02T12:00:00Z"}}
    api = Api({"Pod": ApiError(409, "AlreadyExists", "is there")}, ending)
    assert look(api).requeue_after == LATER
    assert api.status is not None
