"""What the garbage collector has left of deleted jobs: found in the cache, verified at the API server, deleted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi, NotLeading
from dljob_operator.engine.orphans import DeletedJob, Orphan, OrphanCollector

JOBS = ApiResource("/apis/kubeflow.org/v1", "tfjobs")
PODS = ApiResource("/api/v1", "pods")
COLLECTION = "/apis/kubeflow.org/v1/namespaces/team/tfjobs"


class Server(KubeApi):
    """Answers lists of jobs with `jobs`, and records deletions; an exception in their place is raised."""

    def __init__(self) -> None:
        self.jobs: list[str] | Exception = []
        self.lists: list[tuple[str, Any]] = []
        self.deletions: list[tuple[str, Any]] = []
        self.refusals: dict[str, Exception] = {}

    def list_objects(self, path: str, query: Any = None) -> dict[str, Any]:
        """As for all that tenants write: a job may be nested too deeply to be read."""
        self.lists.append((path, query))
        if isinstance(self.jobs, Exception):
            raise self.jobs
        return {"items": [{"metadata": {"name": "digits", "uid": uid}} for uid in self.jobs]}

    def request(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        assert method == "DELETE"
        if path in self.refusals:
            raise self.refusals[path]
        self.deletions.append((path, body["preconditions"]))
        return {}


@pytest.fixture
def server() -> Server:
    return Server()


def orphan(pod: str, job: str = "old") -> Orphan:
    metadata = {"name": pod, "namespace": "team", "uid": f"uid of {pod}"}
    return Orphan(DeletedJob(JOBS, "team", "digits", job), PODS, {"metadata": metadata})


OLD = {"resource": "tfjobs", "namespace": "team", "name": "digits", "uid": "old"}
"""The log fields of the deleted job."""


def passes(server: Server, *found: Iterable[Orphan]) -> None:
    """One pass for each argument, which has what the cache holds then."""
    cached = map(list, found)
    collector = OrphanCollector(server, lambda: next(cached))
    for _ in found:
        collector.collect()


@pytest.mark.parametrize("jobs", [[], ["new"]], ids=["no job", "another job of its name"])
def test_what_is_left_for_two_passes_is_deleted_with_its_uid(
    server: Server, jobs: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    server.jobs = jobs
    left = [orphan("worker-0"), orphan("worker-1")]
    passes(server, left, left)
    assert server.lists == [(COLLECTION, {"fieldSelector": "metadata.name=digits"})]
    assert server.deletions == [
        (f"/api/v1/namespaces/team/pods/worker-{n}", {"uid": f"uid of worker-{n}"}) for n in (0, 1)
    ]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.__dict__["dljob_fields"] == OLD | {"objects": 2}


def test_the_garbage_collector_is_left_alone_while_it_makes_progress(server: Server) -> None:
    passes(server, [orphan("a"), orphan("b"), orphan("c")], [orphan("b"), orphan("c")], [orphan("c")], [])
    assert (server.lists, server.deletions) == ([], [])


def test_a_job_that_only_the_cache_lacks_keeps_its_objects(server: Server) -> None:
    server.jobs = ["old"]
    passes(server, [orphan("a")], [orphan("a")])
    assert len(server.lists) == 1
    assert server.deletions == []


@pytest.mark.parametrize(
    "answer",
    [ApiError(404, "NotFound", "the server could not find the requested resource"), ApiConnectionError("no answer")],
    ids=["the kind is not served", "no answer"],
)
def test_without_an_answer_nothing_is_deleted_and_the_next_pass_tries_again(
    server: Server, answer: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    server.jobs = answer
    passes(server, [orphan("a")], [orphan("a")], [orphan("a")])
    assert len(server.lists) == 2
    assert server.deletions == []
    assert [record.__dict__["dljob_fields"] for record in caplog.records] == [OLD | {"error": answer}] * 2


@pytest.mark.parametrize("status", [404, 409], ids=["already deleted", "a newer object has that name"])
def test_an_object_that_is_gone_is_no_error(server: Server, status: int) -> None:
    server.refusals["/api/v1/namespaces/team/pods/a"] = ApiError(status, "Gone", "not this one")
    passes(server, *[[orphan("a"), orphan("b")]] * 2)
    assert [path for path, _ in server.deletions] == ["/api/v1/namespaces/team/pods/b"]


def test_a_former_leader_deletes_nothing_and_goes_on_with_the_next_job(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.refusals["/api/v1/namespaces/team/pods/a"] = NotLeading("this operator is no longer the leader")
    left = [orphan("a", "first"), orphan("b", "second")]
    passes(server, left, left)
    assert [path for path, _ in server.deletions] == ["/api/v1/namespaces/team/pods/b"]
    assert "cannot delete what is left of a deleted job" in caplog.text


def test_one_pass_asks_for_a_hundred_jobs_and_the_next_for_others(server: Server) -> None:
    server.jobs = [f"job-{n}" for n in range(200)]  # only the cache lacks the first 200
    left = [orphan(f"pod-{n}", f"job-{n}") for n in range(250)]
    passes(server, left, left)
    assert len(server.lists) == 100
    passes(server, *[left] * 4)
    assert {path.rsplit("/", 1)[1] for path, _ in server.deletions} == {f"pod-{n}" for n in range(200, 250)}


def test_it_passes_at_intervals_until_it_is_stopped(server: Server) -> None:
    passes_made: list[int] = []
    stopped = threading.Event()

    def found() -> list[Orphan]:
        passes_made.append(1)
        if len(passes_made) == 2:
            collector.stop()
            stopped.set()
        return []

    collector = OrphanCollector(server, found, interval=0.001)
    collector.start()
    assert stopped.wait(10)
