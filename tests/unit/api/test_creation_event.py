"""Every pod that is created has an Event, also where the status stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import reconcile
from support.builders import NOW, PYTORCH, Resource, pytorchjob, stamp
from support.fake_api_server import Call, FakeApiServer, FakeRestClient, Fault, failure, forbidden, pod_quota

KEY = "default", "pytorchjobs"
PODS = "default", "pods"


class Here:
    """A PyTorchJob of a master and two workers, whose pods run."""

    def __init__(self, *, workers: int = 2, **spec: Any) -> None:
        self.server = FakeApiServer(lambda: NOW)
        job = pytorchjob(1, workers)
        job["spec"] |= spec
        self.server.add(KEY, job)
        (self.name,) = self.server.objects[KEY]
        self.settle()
        self.run_all()
        self.settle()
        self.server.objects["default", "events"] = {}

    @property
    def job(self) -> Resource:
        return self.server.objects[KEY][self.name]

    @property
    def pods(self) -> dict[str, Resource]:
        return self.server.objects[PODS]

    def run_all(self) -> None:
        for pod in self.pods.values():
            pod["status"] = {
                "phase": "Running",
                "containerStatuses": [{"name": "pytorch", "restartCount": 0, "state": {"running": {}}}],
            }

    def step(self) -> Any:
        client = FakeRestClient(self.server)
        return reconcile(Context(client, Reader(client), clock=lambda: NOW), self.job, PYTORCH)

    def settle(self) -> None:
        for _ in range(12):
            done = self.step()
            self.pods_end()
            if not done.changed:
                return
        raise AssertionError("the job does not come to rest")

    def pods_end(self) -> None:
        """The kubelet removes the terminating pods."""
        pods = self.server.objects.get(PODS, {})
        self.server.objects[PODS] = {n: p for n, p in pods.items() if not p["metadata"].get("deletionTimestamp")}

    def edit(self, change: Callable[[Any], object]) -> None:
        change(self.job["spec"])
        self.job["metadata"]["generation"] += 1

    def created(self) -> list[str]:
        events = self.server.objects["default", "events"].values()
        return [event["message"] for event in events if event["reason"] == "SuccessfulCreatePod"]


def delete(here: Here, name: str = "worker-1") -> None:
    here.pods[f"{here.name}-{name}"]["metadata"]["deletionTimestamp"] = stamp(30)


def evict(here: Here) -> None:
    here.pods[f"{here.name}-worker-1"]["status"] |= {
        "phase": "Failed",
        "reason": "Evicted",
        "conditions": [{"type": "DisruptionTarget", "status": "True"}],
    }


def worker(here: Here) -> Any:
    return here.job["spec"]["pytorchReplicaSpecs"]["Worker"]


ELASTIC = {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 5}}


@pytest.mark.parametrize(
    ("spec", "change", "messages"),
    [
        pytest.param({}, delete, "Created 1 of 3 pods: NAME-worker-1", id="a user deletes a pod"),
        pytest.param({}, evict, "Created 1 of 3 pods: NAME-worker-1", id="the cluster evicts one"),
        pytest.param(
            {"runPolicy": {"restartScope": "Job"}},
            evict,
            "Created 3 of 3 pods: NAME-master-0, NAME-worker-0, NAME-worker-1",
            id="all restart",
        ),
        pytest.param(
            {},
            lambda here: here.edit(lambda spec: worker(here)["template"]["spec"].update(nodeName="n1")),
            "Created 2 of 3 pods: NAME-worker-0, NAME-worker-1",
            id="an edit of a template",
        ),
        pytest.param(
            {},
            lambda here: here.edit(lambda spec: worker(here).update(replicas=3)),
            "Created 1 of 4 pods: NAME-worker-2; Created 3 of 4 pods: NAME-master-0, NAME-worker-0, NAME-worker-1",
            id="another number of replicas",
        ),
        pytest.param(
            ELASTIC,
            lambda here: here.edit(lambda spec: worker(here).update(replicas=4)),
            "Created 2 of 5 pods: NAME-worker-2, NAME-worker-3",
            id="an elastic job grows",
        ),
    ],
)
def test_each_creation_has_one_event(spec: Any, change: Callable[[Here], None], messages: str) -> None:
    here = Here(**spec)
    change(here)
    here.settle()
    assert here.created() == messages.replace("NAME", here.name).split("; ")
    here.step()
    assert len(here.created()) == len(messages.split("; ")), "a reconcile without a creation writes none"


def test_a_conflict_of_the_status_does_not_lose_the_event() -> None:
    here = Here(**ELASTIC)
    here.edit(lambda spec: worker(here).update(replicas=3))
    conflict = Fault(failure(409, "Conflict", "changed"), lambda call: call.subresource == "status")
    here.server.faults.append(conflict)
    here.settle()
    assert here.created() == [f"Created 1 of 4 pods: {here.name}-worker-2"]


def test_of_a_new_job_a_conflict_makes_no_second_event() -> None:
    server = FakeApiServer(lambda: NOW)
    here = Here.__new__(Here)
    here.server = server
    server.add(KEY, pytorchjob(1, 2))
    (here.name,) = server.objects[KEY]
    conflict = Fault(failure(409, "Conflict", "changed"), lambda call: call.subresource == "status")
    server.faults.append(conflict)
    here.settle()
    assert [text.partition(":")[0] for text in here.created()] == ["Created 3 of 3 pods"]


def test_pods_of_which_a_quota_denies_some_have_their_event() -> None:
    here = Here(**ELASTIC)
    here.server.admission.append(pod_quota(4, "q"))
    here.edit(lambda spec: worker(here).update(replicas=3 + 1))
    here.settle()
    assert here.created() == [f"Created 1 of 5 pods: {here.name}-worker-2"]
    here.server.admission.clear()
    here.settle()
    assert here.created()[1:] == [f"Created 1 of 5 pods: {here.name}-worker-3"]


def test_a_service_that_is_denied_beside_them_does_not_hide_them() -> None:
    def no_service(call: Call, server: FakeApiServer) -> Any:
        return forbidden(call, "a", "quota") if call.plural == "services" else None

    here = Here()
    here.server.admission.append(no_service)
    here.server.objects["default", "services"] = {}
    delete(here)
    here.settle()
    assert here.created() == [f"Created 1 of 3 pods: {here.name}-worker-1"]
