"""A job whose pods another operator has created: the reconcile that finds them adopts them and reports nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import MXNET, NOW, UID, mxjob, stamp
from support.fake_api_server import FakeApiServer, FakeRestClient, Fault, failure
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


# What happens to a job before its pods are adopted


KEY = ("default", "mxjobs")
RUNNING = [{"type": "Created", "status": "True"}, {"type": "Running", "status": "True"}]


class Here:
    """An API server with a job of training-operator that runs, and the cache of an engine, which has none of its pods."""

    def __init__(self, **run_policy: Any) -> None:
        self.server = FakeApiServer()
        job = mxjob("digits").v1().workers(2).run_policy(**run_policy).status(conditions=RUNNING, startTime=stamp(-60))
        self.server.add(KEY, job.resource())
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "MXJob", "name": "digits", "uid": UID, "controller": True}
        for name, uid in [*((pod, UID) for pod in PODS), ("of-another-job", "other")]:
            metadata = {"name": name, "namespace": "default", "labels": {"training.kubeflow.org/job-name": "digits"}}
            pod = {"metadata": {**metadata, "ownerReferences": [{**owner, "uid": uid}]}, "spec": {}}
            self.server.add(("default", "pods"), {"kind": "Pod", **pod, "status": {"phase": "Running"}})

    def step(self) -> Outcome:
        client = FakeRestClient(self.server)
        context = Context(client, Reader(client, None), clock=lambda: NOW)
        return reconcile(context, self.server.objects[KEY]["digits"], MXNET)

    def settle(self) -> None:
        for _ in range(4):
            self.step()
            pods = self.server.objects["default", "pods"]
            for name in [name for name, pod in pods.items() if pod["metadata"].get("deletionTimestamp")]:
                del pods[name]

    def pods(self) -> list[str]:
        return sorted(self.server.objects["default", "pods"])

    @property
    def status(self) -> Any:
        return self.server.objects[KEY]["digits"]["status"]


@pytest.mark.parametrize("failures", [0, 2])
def test_the_pods_of_a_suspended_job_go(failures: int) -> None:
    """Kueue gives their quota to another job. Without a label of this operator no cache has them."""
    here = Here(suspend=True)
    failed = failure(500, "InternalError", "etcdserver: request timed out")
    here.server.faults.append(
        Fault(failed, lambda call: (call.method, call.plural) == ("DELETE", "pods"), times=failures)
    )
    here.settle()
    assert here.pods() == ["of-another-job"]
    assert here.status["conditions"][-1]["type"] == "Suspended"
    here.server.calls.clear()
    here.step()
    assert {call.method for call in here.server.calls} == {"GET"}
    selectors = [call.query.get("labelSelector", "") for call in here.server.calls]
    assert not any("training.kubeflow.org" in selector for selector in selectors), "it searches once"


def test_a_job_that_is_over_its_deadline_is_adopted_before_it_fails() -> None:
    here = Here(activeDeadlineSeconds=30, cleanPodPolicy="All")
    here.step()
    assert "phase" not in here.status, "it would have failed with its pods left"
    here.settle()
    assert (here.status["failure"]["reason"], here.pods()) == ("DeadlineExceeded", ["of-another-job"])


def test_a_job_that_has_not_begun_has_none() -> None:
    here = Here()
    here.server.objects[KEY]["digits"]["status"] = {}
    here.server.calls.clear()
    here.step()
    selectors = [call.query.get("labelSelector", "") for call in here.server.calls]
    assert not any("training.kubeflow.org" in selector for selector in selectors)
