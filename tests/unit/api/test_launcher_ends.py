"""A batch Job is not created again while a pod of the one before runs, also if only the cache lacks that pod."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import labels
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import CACHE_REQUEUE
from support.builders import MPI, NOW, UID, Resource, mpijob
from support.fake_api_server import FakeApiServer, FakeRestClient
from support.unwatched import Unwatched

KEY = ("default", "mpijobs")
KINDS = {"Pod": "pods", "Service": "services", "Job": "jobs", "ConfigMap": "configmaps", "Secret": "secrets"}
PODS = ("default", "pods")


class Here:
    """An API server with one MPIJob, whose workers run and whose batch Job is gone, and a cache of its objects."""

    def __init__(self) -> None:
        self.server = FakeApiServer()
        self.server.add(KEY, mpijob())
        self.hidden: set[str] = set()
        """The pods that the cache lacks."""
        self.step()
        for pod in self.server.objects[PODS].values():
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self.step()
        assert self.launchers == ["pi-launcher"]
        assert self.lists() == 0, "a new job has had no batch Job"
        self.server.objects["default", "jobs"].clear()

    def step(self, reader: type[Reader] = Reader) -> Outcome:
        client = FakeRestClient(self.server)
        owned = {kind: self._cached(plural) for kind, plural in KINDS.items()}
        context = Context(client, reader(client, {UID: owned}), clock=lambda: NOW)
        return reconcile(context, copy.deepcopy(self.server.objects[KEY]["pi"]), MPI)

    def _cached(self, plural: str) -> list[Resource]:
        found = self.server.objects.get(("default", plural), {})
        return [copy.deepcopy(one) for name, one in found.items() if name not in self.hidden]

    def launch(self, phase: str = "Running", **metadata: Any) -> None:
        """The pod of a batch Job that is gone; ``metadata`` replaces some of its own."""
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "pi-launcher", "uid": "gone", "controller": True}
        marks = {**labels(UID), "dljob.operator/replica-type": "launcher"}
        own = {"name": "pi-launcher-x", "namespace": "default", "labels": marks, "ownerReferences": [owner]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**own, **metadata}, "status": {"phase": phase}}
        self.server.add(PODS, pod)

    def lists(self) -> int:
        return sum(call.method == "GET" and call.plural == "pods" for call in self.server.calls)

    @property
    def launchers(self) -> list[str]:
        return list(self.server.objects.get(("default", "jobs"), {}))


@pytest.fixture
def here() -> Here:
    return Here()


def test_the_api_server_is_asked_for_the_pod_of_the_one_before(here: Here) -> None:
    here.launch()
    here.hidden = {"pi-launcher-x"}
    outcome = here.step()
    assert (here.launchers, outcome.changed, outcome.requeue_after) == ([], False, CACHE_REQUEUE)
    assert outcome.message == "the cache lacks a pod of a batch Job of the job"
    del here.server.objects[PODS]["pi-launcher-x"]
    here.step()
    assert here.launchers == ["pi-launcher"]


def test_a_pod_that_has_ended_is_not_waited_for(here: Here) -> None:
    here.launch("Failed")
    here.hidden = {"pi-launcher-x"}
    here.step()
    assert here.launchers == ["pi-launcher"]


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": labels("another")},
        {"ownerReferences": []},
    ],
)
def test_other_pods_are_not_waited_for(here: Here, metadata: dict[str, Any]) -> None:
    here.launch(**metadata)
    here.hidden = {"pi-launcher-x"}
    here.step()
    assert here.launchers == ["pi-launcher"]


def test_workers_wait_for_it_too(here: Here) -> None:
    """It would reach them: they have the names of its own."""
    here.server.objects[KEY]["pi"]["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    del here.server.objects[PODS]["pi-worker-1"]
    here.launch()
    here.hidden = {"pi-launcher-x"}
    assert here.step().message == "the cache lacks a pod of a batch Job of the job"
    assert "pi-worker-1" not in here.server.objects[PODS]
    del here.server.objects[PODS]["pi-launcher-x"]
    here.step()
    assert ("pi-worker-1" in here.server.objects[PODS], here.launchers) == (True, [])


def test_a_job_without_a_status_may_have_had_a_launcher(here: Here) -> None:
    """Its first status is written later than its pods."""
    del here.server.objects[KEY]["pi"]["status"]
    here.launch()
    here.hidden = {"pi-launcher-x"}
    here.step()
    assert here.launchers == []


def test_the_pod_of_a_present_batch_job_is_not_waited_for(here: Here) -> None:
    """A hook may return batch Jobs, and a framework have several types that batch Jobs run."""
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "pi", "uid": UID, "controller": True}
    metadata = {"name": "other", "namespace": "default", "uid": "gone", "labels": labels(UID)}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "ownerReferences": [owner]}}
    here.server.add(("default", "jobs"), job)
    here.launch()
    here.step()
    assert here.launchers == ["other", "pi-launcher"]


def test_a_pod_that_the_cache_has_costs_no_request(here: Here) -> None:
    here.launch()
    here.step()
    assert (here.launchers, here.lists()) == ([], 0)


def test_what_was_just_read_is_not_read_again(here: Here) -> None:
    here.step(Unwatched)
    assert (here.launchers, here.lists()) == (["pi-launcher"], 0)


def test_beside_its_batch_job_nothing_is_asked(here: Here) -> None:
    here.step()
    assert (here.launchers, here.lists()) == (["pi-launcher"], 1)
    here.step()
    del here.server.objects[PODS]["pi-worker-1"]
    here.step()
    assert ("pi-worker-1" in here.server.objects[PODS], here.lists()) == (True, 1)
