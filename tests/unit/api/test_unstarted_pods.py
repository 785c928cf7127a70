"""A reconcile reads the Events of pods that do not start, and of no other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.values.framework import Framework
from support import batch_controller
from support.builders import MPI, MXNET, NOW, PYTORCH, TENSORFLOW, Resource, mpijob, mxjob, pytorchjob, stamp, tfjob
from support.fake_api_server import FakeApiServer, FakeRestClient, Fault, failure, no_answer

SECRET = 'MountVolume.SetUp failed for volume "data" : secret "nope" not found'


class Here:
    """A job whose pods have a node, and whose containers are being created."""

    def __init__(self, job: Resource | None = None, framework: Framework = PYTORCH, **policy: Any) -> None:
        self.server = FakeApiServer(lambda: NOW)
        self.client = FakeRestClient(self.server)
        self.framework = framework
        made = job or pytorchjob(1, 5)
        if isinstance(made["spec"], dict) and policy:
            made["spec"].setdefault("runPolicy", {}).update(policy)
        self.key = "default", f"{made['kind'].lower()}s"
        self.server.add(self.key, made)
        (self.name,) = self.server.objects[self.key]
        self.step(0)
        batch_controller.work(self.server)
        for pod in self.pods.values():
            pod["spec"] = {**pod["spec"], "nodeName": "n1"}
            pod["status"] = {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp()}],
            }
        self.step(1)
        self.server.calls.clear()

    @property
    def pods(self) -> dict[str, Resource]:
        return self.server.objects["default", "pods"]

    @property
    def status(self) -> Mapping[str, Any]:
        return self.server.objects[self.key][self.name]["status"]

    def step(self, seconds: float, client: FakeRestClient | None = None) -> Outcome:
        context = Context(
            client or self.client, Reader(client or self.client), clock=lambda: NOW + timedelta(seconds=seconds)
        )
        return reconcile(context, self.server.objects[self.key][self.name], self.framework)

    def warn(self, pod: str, message: str = SECRET, last: float = 2) -> None:
        found = self.pods[pod]["metadata"]
        self.server.add(
            ("default", "events"),
            {
                "kind": "Event",
                "metadata": {"name": f"{pod}.{len(message)}", "namespace": "default"},
                "involvedObject": {"kind": "Pod", "name": pod, "uid": found["uid"]},
                "type": "Warning",
                "reason": "FailedMount",
                "message": message,
                "lastTimestamp": stamp(last),
            },
        )

    def reads(self) -> int:
        return sum(call.method == "GET" and call.plural == "events" for call in self.server.calls)

    def writes(self) -> list[str]:
        return [f"{call.method} {call.plural}" for call in self.server.calls if call.method != "GET"]


@pytest.mark.parametrize(
    ("job", "framework"),
    [
        pytest.param(pytorchjob(1, 2), PYTORCH, id="PyTorchJob"),
        pytest.param(tfjob(MASTER=1, PS=1), TENSORFLOW, id="TfJob of v1alpha1"),
        pytest.param(mxjob("digits").v1alpha1().workers(2).resource(), MXNET, id="MXJob of v1alpha1"),
        pytest.param(mpijob(), MPI, id="MPIJob, whose launcher a batch Job runs"),
    ],
)
def test_the_reason_is_the_kubelets(job: Resource, framework: Framework) -> None:
    here = Here(job, framework)
    pod = next((name for name in here.pods if "launcher" in name), min(here.pods))
    here.warn(pod)
    assert here.step(5).requeue_after == 5.0
    assert (here.reads(), here.status["reason"]) == (0, ""), "it may start by itself"
    assert here.step(10).requeue_after == 10.0
    assert here.reads() == min(3, len(here.pods))
    assert here.status["reason"] == f"{pod}: FailedMount: {SECRET}"


def test_a_pod_that_starts_costs_no_request() -> None:
    here = Here()
    for pod in here.pods.values():
        pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "pytorch", "state": {"running": {}}}]}
    for seconds in (5, 10, 20):
        assert here.step(seconds).requeue_after is None
    assert here.reads() == 0


def test_few_requests_a_reconcile_and_none_again_soon() -> None:
    here = Here()
    here.warn(f"{here.name}-master-0")
    here.step(10)
    assert here.reads() == 3
    before = dict(here.status)
    here.server.calls.clear()
    for seconds in (11, 12, 13, 14):
        here.step(seconds)
    assert (here.reads(), here.writes(), here.status) == (0, [], before), "the reason stays"
    here.step(20)
    assert (here.reads(), here.writes(), here.status) == (3, [], before)


def test_another_process_says_the_same() -> None:
    """The workers of an engine share no memory."""
    here = Here()
    here.warn(f"{here.name}-master-0")
    here.step(10)
    before = dict(here.status)
    here.server.calls.clear()
    here.step(11, FakeRestClient(here.server))
    assert (here.reads(), here.writes(), here.status) == (3, [], before)


def test_the_reason_goes_with_its_cause() -> None:
    here = Here()
    here.warn(f"{here.name}-master-0")
    here.step(10)
    assert here.status["reason"]
    for pod in here.pods.values():
        pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "pytorch", "state": {"running": {}}}]}
    here.step(11)
    assert (here.status["reason"], here.status["state"]) == ("", "Running")


@pytest.mark.parametrize("limit", [5, 30])
def test_the_pending_timeout_quotes_it(limit: int) -> None:
    here = Here(pendingTimeoutSeconds=limit)
    here.warn(f"{here.name}-master-0")
    here.step(limit)
    assert here.status["failure"]["reason"] == "PendingTimeoutExceeded"
    assert here.status["failure"]["message"].endswith(
        f"spec.runPolicy.pendingTimeoutSeconds, {limit} s: FailedMount: {SECRET}"
    )
    for _ in range(3):
        here.step(limit + 1)
    assert not any(not pod["metadata"].get("deletionTimestamp") for pod in here.pods.values()), "none starts later"


@pytest.mark.parametrize(
    ("response", "is_logged"),
    [
        (
            failure(
                403,
                "Forbidden",
                'events is forbidden: User "u" cannot list resource "events" in API group "" in the namespace "default"',
            ),
            True,
        ),
        (no_answer(), False),
        (failure(500, "InternalError", "no"), False),
    ],
    ids=["without the right", "no answer", "an error"],
)
def test_without_an_answer_the_job_goes_on_as_before(response: Any, is_logged: bool) -> None:
    here = Here()
    here.server.faults.append(Fault(response, lambda call: call.plural == "events" and call.method == "GET", times=99))
    for seconds in (10, 20, 40):
        outcome = here.step(seconds)
        assert (outcome.ok, outcome.changed) == (True, False)
        assert len(outcome.warnings) == is_logged, "one and the same, which the engine logs once"
    assert (here.status["reason"], here.status["state"]) == ("", "Created")
