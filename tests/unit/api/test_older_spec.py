"""A cache that has an older spec of a job than the API server: pods of the newer one are not deleted for it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import CACHE_REQUEUE
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import NOW, PYTORCH, UID, Resource, pods_of, pytorchjob, stamp
from support.recording_api import Api
from support.unwatched import Unwatched

NEWER = pytorchjob(worker=3, elasticPolicy={"minReplicas": 1, "maxReplicas": 4})
NEWER["metadata"]["resourceVersion"] = "1"


class Server(Api):
    """Has the job with these metadata, or none. Records what is deleted."""

    def __init__(self, generation: int | None, uid: str = UID) -> None:
        super().__init__(present={"metadata": {"uid": uid, "generation": generation}})
        self._is_gone = generation is None
        self.reads: list[tuple[str, Any]] = []
        self.deleted: list[str] = []

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        if method == "GET":
            self.reads.append((path, query))
            if self._is_gone:
                raise ApiError(404, "NotFound", "the job is gone")
        if method == "DELETE":
            self.deleted.append(path.rpartition("/")[2])
        return super().request(method, path, body, query, content_type)


def fewer(spec: Resource) -> None:
    spec["pytorchReplicaSpecs"]["Worker"]["replicas"] = 1


def another_image(spec: Resource) -> None:
    spec["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = "train:0"


def suspended(spec: Resource) -> None:
    spec["runPolicy"] = {"suspend": True}


def cleans_up(spec: Resource) -> None:
    spec["runPolicy"] = {"cleanPodPolicy": "All"}


def same(spec: Resource) -> None:
    pass


def reconciled(
    server: Server, change: Callable[[Resource], None], watched: bool = True, status: Resource | None = None
) -> Any:
    """With the pods of ``NEWER``, all running, and a cache whose job differs from it by ``change``."""
    pods = [pod.running().resource() for pod in pods_of(parse_job(NEWER, PYTORCH), PYTORCH)]
    cached = copy.deepcopy(NEWER)
    change(cached["spec"])
    cached["status"] = status or {}
    owned = {"Pod": pods, "Service": [], "ConfigMap": []}
    reader = (Reader if watched else Unwatched)(server, {UID: owned})
    return reconcile(Context(server, reader, clock=lambda: NOW), cached, PYTORCH)


@pytest.mark.parametrize("found", [(2, UID), (None, UID), (1, "another")], ids=["edited", "gone", "re-created"])
@pytest.mark.parametrize("change", [fewer, another_image, suspended])
def test_pods_that_an_older_spec_does_not_want_stay(
    change: Callable[[Resource], None], found: tuple[int | None, str]
) -> None:
    server = Server(*found)
    outcome = reconciled(server, change)
    assert (server.deleted, server.made, server.status) == ([], [], None)
    assert (outcome.ok, outcome.changed) == (True, False)
    assert outcome.message == "the cache has an older spec of the job"
    path = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/example-job"  # no list, which the API server delays
    assert server.reads == [(path, None)]
    assert outcome.requeue_after == CACHE_REQUEUE


@pytest.mark.parametrize(("change", "deleted"), [(fewer, 2), (another_image, 3), (suspended, 3)])
def test_pods_that_the_current_spec_does_not_want_are_deleted(change: Callable[[Resource], None], deleted: int) -> None:
    server = Server(1)
    reconciled(server, change)
    assert len(server.deleted) == deleted


def test_only_such_a_deletion_reads_the_job() -> None:
    server = Server(2)
    reconciled(server, same)
    assert server.reads == []


def test_a_job_that_was_just_read_is_not_read_again() -> None:
    server = Server(2)
    reconciled(server, fewer, watched=False)
    assert (server.reads, len(server.deleted)) == ([], 2)


def refused(reason: str) -> Resource:
    condition = {"type": "Failed", "status": "True", "lastTransitionTime": stamp()}
    failed = {"state": "Failed", "phase": "CleanUp", "conditions": [condition], "completionTime": stamp()}
    return {**failed, "failure": {"reason": reason}, "observedGeneration": 1}


@pytest.mark.parametrize(("generation", "deleted"), [(2, 0), (1, 3)], ids=["edited", "the same"])
def test_pods_of_a_job_that_started_again_after_an_edit_stay(generation: int, deleted: int) -> None:
    """The cached job was refused by Kubernetes; the user has mended it, and its pods run."""
    server = Server(generation)
    reconciled(server, same, status=refused("RefusedByKubernetes"))
    assert (len(server.reads), len(server.deleted)) == (1, deleted)


def test_the_clean_up_of_a_job_that_is_over_for_good_reads_nothing() -> None:
    server = Server(2)
    reconciled(server, cleans_up, status=refused("BackoffLimitExceeded"))
    assert (server.reads, len(server.deleted)) == ([], 3)
