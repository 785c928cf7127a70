"""A pod of a finished job that runs although the status has recorded the end of its replica: it is deleted, unless the
cache only lacks the end of that pod."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import CACHE_REQUEUE
from support.builders import MXNET, NOW, Resource, mxjob, pod_of, stamp
from support.recording_api import Api
from support.unwatched import Unwatched

MADE = mxjob("digits").v1().workers(2).run_policy(cleanPodPolicy="Running")
JOB = MADE.status(state="Succeeded", phase="CleanUp", completionTime=stamp(-100), completed={"worker": "0-1"})
UID = JOB.resource()["metadata"]["uid"]
FIRST, SECOND = (pod_of(JOB.job(), "worker", index) for index in (0, 1))
REPLACED = pod_of(JOB.job(), "worker", 1).running().change(lambda pod: pod["metadata"].update(uid="another"))
RUNNING = [FIRST.running().resource(), SECOND.running().resource()]


class Server(Api):
    """Has these pods. Records the paths of requests."""

    def __init__(self, pods: list[Resource]) -> None:
        super().__init__(present={"items": pods})
        self.requests: dict[str, list[str]] = {"GET": [], "DELETE": []}

    def request(self, method: str, path: str, body: Any = None, query: Any = None, content_type: str = "") -> Any:
        self.requests.get(method, []).append(path)
        return super().request(method, path, body, query, content_type)

    @property
    def deleted(self) -> list[str]:
        return [path.rpartition("/")[2] for path in self.requests["DELETE"]]


def reconciled(server: Server, cached: list[Resource], watched: bool = True) -> Outcome:
    job = JOB.resource()
    reader = (Reader if watched else Unwatched)(server, {UID: {"Pod": cached, "Service": []}})
    return reconcile(Context(server, reader, clock=lambda: NOW), job, MXNET)


def test_a_pod_that_runs_at_the_api_server_too_is_deleted() -> None:
    server = Server(RUNNING)
    reconciled(server, RUNNING)
    assert server.deleted == ["digits-worker-0", "digits-worker-1"]


@pytest.mark.parametrize(
    "present",
    [
        pytest.param([RUNNING[0], SECOND.exited(0).resource()], id="one has ended"),
        pytest.param([RUNNING[0], SECOND.refused_by_node("Evicted").resource()], id="one was evicted"),
        pytest.param([RUNNING[0]], id="one is gone"),
        pytest.param([RUNNING[0], REPLACED.resource()], id="replaced"),
    ],
)
def test_what_the_cache_only_lacks_the_end_of_keeps_its_log(present: list[Resource]) -> None:
    server = Server(present)
    outcome = reconciled(server, RUNNING)
    assert (server.deleted, server.status) == ([], None)
    assert (outcome.ok, outcome.changed, outcome.requeue_after) == (True, False, CACHE_REQUEUE)
    assert outcome.message == "the cache lacks the end of pods of the job"


def test_pods_that_were_just_read_are_not_read_again() -> None:
    server = Server([])
    reconciled(server, RUNNING, watched=False)
    assert (server.requests["GET"], len(server.deleted)) == ([], 2)


def test_a_job_without_such_a_pod_costs_no_request() -> None:
    server = Server([])
    reconciled(server, [pod.succeeded().resource() for pod in (FIRST, SECOND)])
    assert server.requests == {"GET": [], "DELETE": []}
