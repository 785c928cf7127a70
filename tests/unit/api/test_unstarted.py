"""A pod that has not started when its job ends is deleted, unless the API server knows that it has started meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import reconcile
from support.builders import NOW, PYTORCH, Resource, pytorchjob
from support.fake_api_server import FakeApiServer, FakeRestClient

KEY = "default", "pytorchjobs"
RUNNING = {"phase": "Running", "containerStatuses": [{"name": "pytorch", "restartCount": 0, "state": {"running": {}}}]}
ENDS = {
    "Failed": {"phase": "Failed", "containerStatuses": [{"name": "pytorch", "state": {"terminated": {"exitCode": 1}}}]},
    "Succeeded": {
        "phase": "Succeeded",
        "containerStatuses": [{"name": "pytorch", "state": {"terminated": {"exitCode": 0}}}],
    },
}


class Here:
    def __init__(self) -> None:
        self.server = FakeApiServer(lambda: NOW)
        job = pytorchjob(1, 2)
        job["spec"]["runPolicy"] = {"cleanPodPolicy": "None"}
        for replica in job["spec"]["pytorchReplicaSpecs"].values():
            replica["restartPolicy"] = "Never"
        self.server.add(KEY, job)
        (self.name,) = self.server.objects[KEY]
        self.uid = job["metadata"]["uid"]
        self.step()

    def pod(self, name: str) -> Resource:
        return self.server.objects["default", "pods"][f"{self.name}-{name}"]

    def step(self, cache: Any = None) -> Any:
        client = FakeRestClient(self.server)
        owned = None if cache is None else {self.uid: {"Pod": cache}}
        return reconcile(
            Context(client, Reader(client, owned), clock=lambda: NOW), self.server.objects[KEY][self.name], PYTORCH
        )

    def live(self) -> list[str]:
        pods = self.server.objects["default", "pods"].items()
        return sorted(
            name.removeprefix(f"{self.name}-") for name, p in pods if not p["metadata"].get("deletionTimestamp")
        )


@pytest.mark.parametrize("state", ENDS)
def test_it_does_not_start_in_a_job_that_is_over(state: str) -> None:
    here = Here()
    here.pod("worker-0")["status"] = RUNNING
    here.pod("master-0")["status"] = ENDS[state]
    for _ in range(3):
        here.step()
    assert here.server.objects[KEY][here.name]["status"]["state"] == state
    assert here.live() == ["master-0", "worker-0"], "None keeps what has run"
    assert not here.step().changed


@pytest.mark.parametrize("has_started", [True, False])
def test_a_cache_that_is_behind_deletes_no_pod_that_runs(has_started: bool) -> None:
    here = Here()
    here.pod("worker-0")["status"] = RUNNING
    here.pod("master-0")["status"] = ENDS["Failed"]
    here.step()
    cache = [here.pod("master-0"), here.pod("worker-0"), dict(here.pod("worker-1"))]
    if has_started:
        here.server.objects["default", "pods"][f"{here.name}-worker-1"] = {**here.pod("worker-1"), "status": RUNNING}
    outcome = here.step(cache)
    if has_started:
        assert (outcome.message, outcome.requeue_after) == ("the cache lacks the start of pods of the job", 1.0)
    assert ("worker-1" in here.live()) is has_started
