"""A launcher whose pod is denied: which requests a reconcile sends, and what the status and the Events say."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from support import batch_controller
from support.builders import MPI, NOW, UID, Resource, at, mpijob
from support.fake_api_server import FakeApiServer, FakeRestClient, Fault, Response, failure, pod_quota

KEY = ("default", "mpijobs")
KINDS = {"Pod": "pods", "Service": "services", "Job": "jobs", "ConfigMap": "configmaps", "Secret": "secrets"}
SAID = (
    "batch Job pi-launcher: FailedCreate: Error creating: its pod is forbidden: exceeded quota: quota, requested: "
    "pods=1, used: pods=1, limited: pods=1"
)


class Here:
    """An API server with one MPIJob of one worker, a quota for so many pods, and a cache of its objects."""

    def __init__(self, pods: int, **run_policy: Any) -> None:
        self.now = NOW
        self.server = FakeApiServer(lambda: self.now)
        self.server.admission.append(pod_quota(pods))
        self.server.add(KEY, mpijob(worker=1, runPolicy=run_policy))
        self.step()
        self.step()

    def step(self, seconds: float = 0, **options: Any) -> Outcome:
        self.now = at((self.now - NOW).total_seconds() + seconds)
        batch_controller.work(self.server)
        self.server.calls.clear()
        client = FakeRestClient(self.server)
        owned = {kind: self._cached(plural) for kind, plural in KINDS.items()}
        context = Context(client, Reader(client, {UID: owned}), clock=self._clock, **options)
        return reconcile(context, copy.deepcopy(self.server.objects[KEY]["pi"]), MPI)

    def _clock(self) -> datetime:
        return self.now

    def _cached(self, plural: str) -> list[Resource]:
        return [copy.deepcopy(one) for one in self.server.objects.get(("default", plural), {}).values()]

    def run(self) -> None:
        for pod in self.server.objects["default", "pods"].values():
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}

    @property
    def status(self) -> Resource:
        return self.server.objects[KEY]["pi"]["status"]

    def reads(self) -> list[str]:
        """The fields by which Events were read."""
        return [
            str(x.query.get("fieldSelector")) for x in self.server.calls if (x.method, x.plural) == ("GET", "events")
        ]

    def events(self) -> list[tuple[str, str]]:
        found = self.server.objects.get(("default", "events"), {}).values()
        return [(one["reason"], one["message"]) for one in found if one["involvedObject"]["kind"] == "MPIJob"]


def test_a_denied_launcher_has_its_reason_in_the_status() -> None:
    here = Here(1, pendingTimeoutSeconds=30)
    assert (here.status["reason"], here.reads()) == ("", [])
    outcome = here.step(2)
    assert (here.reads(), outcome.requeue_after) == ([], 3)
    here.run()
    here.step(4)
    uid = here.server.objects["default", "jobs"]["pi-launcher"]["metadata"]["uid"]
    assert here.reads() == [f"involvedObject.uid={uid}"]
    assert (here.status["state"], here.status["reason"]) == ("Created", SAID)
    assert [text for reason, text in here.events() if reason == "FailedCreatePod"] == [SAID]
    assert not any(one.startswith("Created 2") for _, one in here.events())
    for _ in range(5):
        here.step(60)
    assert (here.status["state"], here.status["reason"]) == ("Created", SAID), "a quota is no pending pod"
    assert len([1 for reason, _ in here.events() if reason == "FailedCreatePod"]) == 1
    assert "failure" not in here.status


def test_its_reason_goes_with_the_cause() -> None:
    here = Here(1)
    here.run()
    here.step(10)
    here.server.admission.clear()
    here.step(10)
    here.run()
    here.step()
    assert (here.status["state"], here.status["reason"], here.reads()) == ("Running", "", [])


def test_a_launcher_without_a_cause() -> None:
    """The Job controller does not run, or the Events are older than an hour."""
    here = Here(1)
    here.server.faults.append(Fault(Response(200, {"items": []}), lambda call: call.plural == "events"))
    here.step(10)
    assert here.status["reason"] == "batch Job pi-launcher: the Job controller has created no pod for it yet"


def test_without_the_permission_the_operator_says_so_in_its_log() -> None:
    here = Here(1)
    text = 'events is forbidden: User "o" cannot list resource "events" in API group ""'
    here.server.faults.append(
        Fault(failure(403, "Forbidden", text), lambda call: call.method == "GET" and call.plural == "events")
    )
    outcome = here.step(10)
    assert outcome.ok
    assert outcome.warnings == (
        f'{text}; add to the operator\'s role: {{apiGroups: [""], resources: [events], verbs: [list]}}',
    )
    assert here.status["reason"].startswith("batch Job pi-launcher: the Job controller has created no pod")


def test_a_healthy_job_costs_no_request() -> None:
    here = Here(9)
    for _ in range(3):
        here.step(10)
        assert here.reads() == []
        here.run()
    assert here.status["state"] == "Running"


@pytest.mark.parametrize("ended", ["Failed", "Succeeded"])
def test_neither_does_one_that_has_ended(ended: str) -> None:
    here = Here(1)
    here.server.objects[KEY]["pi"]["status"] = {**here.status, "state": ended, "phase": "CleanUp"}
    here.step(60)
    assert here.reads() == []
