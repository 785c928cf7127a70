"""When and how the bridge writes the requeue annotation, without an API server."""

from __future__ import annotations

import functools
import math
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.clock import Clock
from support.fed_informers import fill, informer_of, kind_of, without_threads
from support.polling import until

from dljob_operator.ansible_operator_bridge import controller, worker_runs
from dljob_operator.ansible_operator_bridge.command import Command, Input
from dljob_operator.ansible_operator_bridge.controller import REQUEUE_ANNOTATION, BridgeController
from dljob_operator.ansible_operator_bridge.input_folders import InputFolders
from dljob_operator.ansible_operator_bridge.parsed_run import ParsedRun
from dljob_operator.ansible_operator_bridge.run_queue import RunQueue
from dljob_operator.ansible_operator_bridge.supervise import Flags
from dljob_operator.engine.controller import Runner
from dljob_operator.engine.controller_settings import ControllerSettings
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.orphans import OrphanCollector
from dljob_operator.runner import RunEnding, RunResult
from dljob_operator.watches import GVK, Watch

ECHO = GVK("example.com", "v1", "EchoJob")


class Api(KubeApi):
    """Records writes. `refuses` are the errors of the next ones, and reads never succeed."""

    def __init__(self, *refuses: Exception) -> None:
        self.writes: list[tuple[str, str, Any]] = []
        self._refuses = list(refuses)

    def get(self, path: str, query: Any = None) -> dict[str, Any]:
        raise ApiError(500, "", "no")

    list_objects = get

    def request(self, method: str, path: str, body: object = None, **_: Any) -> dict[str, Any]:
        self.writes.append((method, path, body))
        if self._refuses:
            raise self._refuses.pop(0)
        return {}


class NoRuns:
    def __init__(self) -> None:
        self.changes = ChangeCounter.create()

    def close(self) -> None:
        pass


def job(version: str = "1") -> dict[str, Any]:
    metadata = {"name": "j", "namespace": "team", "uid": "1", "resourceVersion": version}
    return {"apiVersion": ECHO.api_version, "kind": ECHO.kind, "metadata": metadata}


def change_the_job(bridge: BridgeController, type_: str, version: str = "2") -> None:
    informer_of(bridge.informers, str(ECHO)).handle({"type": type_, "object": job(version)})


def bridge_of(api: KubeApi, runner: NoRuns | None = None) -> BridgeController:
    """A bridge whose cache has one job, after a run of it."""
    settings = ControllerSettings(max_concurrent=1)
    made = BridgeController([Watch(ECHO)], api, cast(Runner, runner or NoRuns()), settings, Flags())
    kind_of(made.informers, str(ECHO)).api_resource = ApiResource("/apis/example.com/v1", "echojobs")
    change_the_job(made, "ADDED", "1")
    made.requeues.begin("1")
    made.requeues.done("1", ok=True)
    without_threads(made.informers)
    fill(made.informers)
    return made


def change_a_pod(bridge: BridgeController, owner: str = "1") -> None:
    metadata = {"name": "p", "namespace": "team", "uid": "p", "resourceVersion": "5"}
    reference = {"apiVersion": ECHO.api_version, "kind": ECHO.kind, "name": "j", "uid": owner, "controller": True}
    event = {"type": "ADDED", "object": {"metadata": {**metadata, "ownerReferences": [reference]}}}
    informer_of(bridge.informers, "pods").handle(event)


def test_users_changes_and_deletions_reach_the_workers() -> None:
    runner = NoRuns()
    bridge = bridge_of(Api(), runner)
    created = runner.changes.count()
    assert created, "a user has created its job"
    change_a_pod(bridge)
    assert runner.changes.count() == created
    change_the_job(bridge, "DELETED")
    assert (runner.changes.count(), runner.changes.count("1")) == (created + 1, created + 1)


def test_a_changed_pod_annotates_its_job_and_no_other_of_the_name() -> None:
    api = Api()
    bridge = bridge_of(api)
    bridge.start()
    change_a_pod(bridge)
    until(lambda: bool(api.writes))
    bridge.stop(5)
    ((method, path, body),) = api.writes
    assert (method, path) == ("PATCH", "/apis/example.com/v1/namespaces/team/echojobs/j")
    assert body["metadata"]["uid"] == "1"
    assert list(body["metadata"]["annotations"]) == [REQUEUE_ANNOTATION] == ["dljob.operator/requeued-at"]


@pytest.mark.parametrize("error", [ApiError(500, "", "busy"), RuntimeError("a bug")])
def test_a_failed_write_is_repeated(error: Exception) -> None:
    api = Api(error)
    bridge = bridge_of(api)
    bridge.start()
    change_a_pod(bridge)
    until(lambda: len(api.writes) == 2)
    bridge.stop(5)


def test_a_deleted_job_is_not_annotated_again() -> None:
    api = Api(ApiError(404, "NotFound", "gone"))
    bridge = bridge_of(api)
    bridge.start()
    change_a_pod(bridge)
    until(lambda: len(api.writes) == 1)
    assert bridge.requeues.depth == 0
    bridge.stop(5)


def test_the_input_of_a_deleted_job_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "InputFolders", functools.partial(InputFolders, tmp_path, interval=0.001))
    before = set(threading.enumerate())
    bridge = bridge_of(Api())
    (tmp_path / "example.com/v1/EchoJob/team/j/env").mkdir(parents=True)
    bridge.start()
    change_the_job(bridge, "DELETED")
    until(lambda: not list(tmp_path.glob("*/*/*/*/*")))
    bridge.stop(5)
    until(lambda: "input folders" not in {thread.name for thread in set(threading.enumerate()) - before})


class Empty(Api):
    """Has no objects."""

    def list_objects(self, path: str, query: Any = None) -> dict[str, Any]:
        return {"items": []}


def test_it_deletes_what_the_garbage_collector_leaves_of_deleted_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "OrphanCollector", functools.partial(OrphanCollector, interval=0.001))
    before = set(threading.enumerate())
    api = Empty()
    bridge = bridge_of(api)
    change_a_pod(bridge, owner="gone")
    bridge.start()
    until(lambda: bool(api.writes))
    assert [write[:2] for write in api.writes[:1]] == [("DELETE", "/api/v1/namespaces/team/pods/p")]
    bridge.stop(5)
    until(lambda: "orphans" not in {thread.name for thread in set(threading.enumerate()) - before})


# What a restart may mend


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_has_ended_is_a_problem_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = bridge_of(Api())
    ends, wait = threading.Event(), bridge.informers.wait_filled

    def wait_or_end(timeout: float = math.inf) -> bool:
        if threading.current_thread().name == "worker 1":
            ends.wait(10)
            raise SystemExit
        return wait(timeout)

    monkeypatch.setattr(bridge.informers, "wait_filled", wait_or_end)
    bridge.start()
    assert bridge.problem() == ""
    ends.set()
    until(bridge.problem)
    assert bridge.problem() == "the thread worker 1 has ended"
    bridge.stop(5)
    assert bridge.problem() == ""


def test_a_watch_that_has_ended_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = bridge_of(Api())
    monkeypatch.setattr(informer_of(bridge.informers, "pods"), "problem", lambda: "the watch of pods has ended")
    assert bridge.problem() == "the watch of pods has ended"


def test_a_run_that_no_worker_takes_is_a_problem_once_the_caches_are_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(worker_runs, "RunQueue", functools.partial(RunQueue, clock=clock))
    bridge = bridge_of(Api())  # whose workers have not started
    given = Input({}, "_x", job(), "", "")
    parsed = ParsedRun(
        Command(tmp_path, "1", Path("/roles/echo")), given, kind_of(bridge.informers, str(ECHO)), str(ECHO)
    )
    shim = threading.Thread(target=bridge.worker_runs.run, args=[parsed])
    shim.start()
    until(lambda: bridge.worker_runs.depth == 1)
    clock.pass_time(600.0)  # 5 min more than a run may take
    assert bridge.problem() == ""
    clock.pass_time(1.0)
    assert bridge.problem() == "example.com/v1 EchoJob team/j has waited for 601 s, and no worker takes any job"
    informer_of(bridge.informers, "pods").has_synced.clear()
    assert bridge.problem() == "", "without the caches the workers wait for the API server"
    bridge.worker_runs.work.close()
    shim.join(10)


def test_the_embedded_engine_reconciles_what_ansible_operator_cannot_load_with_the_same_watches() -> None:
    """Of two groups with the same kind and version ansible-operator gets the first."""
    other = GVK("second.example.com", ECHO.version, ECHO.kind)
    runner, api = NoRuns(), Api()
    watches = [Watch(ECHO), Watch(other)]
    bridge = BridgeController(watches, api, cast(Runner, runner), ControllerSettings(max_concurrent=1), Flags())
    without_threads(bridge.informers)
    fill(bridge.informers)
    ran: list[str] = []
    runner.results = lambda request: iter([ran.append(request.target) or RunResult(RunEnding.COMPLETED)])  # type: ignore[attr-defined, func-returns-value]
    for kind, uid in ((ECHO, "theirs"), (other, "ours")):
        made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {**job()["metadata"], "uid": uid}}
        informer_of(bridge.informers, str(kind)).handle({"type": "ADDED", "object": made})
    bridge.start()
    until(lambda: str(other) in ran)
    assert set(ran) == {str(other)}
    assert [one.source.what for one in bridge.informers.informers].count("pods") == 1
    bridge.stop(5)
