"""When and how the bridge writes the requeue annotation, without an API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.polling import until

from dljob_operator.ansible_operator_bridge.controller import REQUEUE_ANNOTATION, BridgeController
from dljob_operator.ansible_operator_bridge.input_folders import InputFolders
from dljob_operator.engine.controller import Runner
from dljob_operator.engine.controller_settings import ControllerSettings
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.queue.progress import Stall
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


def bridge_of(api: Api) -> BridgeController:
    """A bridge whose cache has one job, after a run of it."""
    made = BridgeController([Watch(ECHO)], api, cast(Runner, NoRuns()), ControllerSettings(max_concurrent=1))
    kind = made._informers.kind(str(ECHO))
    assert kind is not None
    kind.api_resource = ApiResource("/apis/example.com/v1", "echojobs")
    metadata = {"name": "j", "namespace": "team", "uid": "1", "resourceVersion": "1"}
    kind.informers[0]._handle_event(
        {"type": "ADDED", "object": {"apiVersion": "example.com/v1", "kind": "EchoJob", "metadata": metadata}}
    )
    made._requeues.begin("1")
    made._requeues.done("1", ok=True)
    for informer in made._informers._informers:
        informer.start = lambda: None  # type: ignore[method-assign]
        informer.join = lambda timeout=None: None  # type: ignore[method-assign]
        informer.synced.set()
        informer.has_synced.set()
    return made


def change_a_pod(bridge: BridgeController) -> None:
    (pods,) = (i for i in bridge._informers._informers if i.source.what == "pods")
    metadata = {"name": "p", "namespace": "team", "uid": "p", "resourceVersion": "5"}
    references = [{"uid": "1", "controller": True}]
    pods._handle_event({"type": "ADDED", "object": {"metadata": {**metadata, "ownerReferences": references}}})


def test_users_changes_and_deletions_reach_the_workers() -> None:
    bridge = bridge_of(Api())
    changes = bridge._runner.changes
    created = changes.count()
    assert created, "a user has created its job"
    change_a_pod(bridge)
    assert changes.count() == created
    kind = bridge._informers.kind(str(ECHO))
    assert kind is not None
    metadata = {"name": "j", "namespace": "team", "uid": "1", "resourceVersion": "2"}
    kind.informers[0]._handle_event(
        {"type": "DELETED", "object": {"apiVersion": "example.com/v1", "kind": "EchoJob", "metadata": metadata}}
    )
    assert (changes.count(), changes.count("1")) == (created + 1, created + 1)


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
    assert bridge._requeues.depth == 0
    bridge.stop(5)


def test_the_input_of_a_deleted_job_is_deleted(tmp_path: Path) -> None:
    bridge = bridge_of(Api())
    bridge._inputs = InputFolders(tmp_path, interval=0.001)
    (tmp_path / "example.com/v1/EchoJob/team/j/env").mkdir(parents=True)
    bridge.start()
    kind = bridge._informers.kind(str(ECHO))
    assert kind is not None
    metadata = {"name": "j", "namespace": "team", "uid": "1", "resourceVersion": "2"}
    kind.informers[0]._handle_event(
        {"type": "DELETED", "object": {"apiVersion": "example.com/v1", "kind": "EchoJob", "metadata": metadata}}
    )
    until(lambda: not list(tmp_path.glob("*/*/*/*/*")))
    bridge.stop(5)
    assert bridge._inputs._periodic.is_stopping


def test_it_deletes_what_the_garbage_collector_leaves_of_deleted_jobs() -> None:
    bridge = bridge_of(Api())
    bridge.start()
    assert bridge._orphans._periodic._thread.is_alive()
    assert bridge._orphans._orphans == bridge._informers.orphans
    bridge.stop(5)
    bridge._orphans._periodic._thread.join(5)
    assert not bridge._orphans._periodic._thread.is_alive()


# What a restart may mend


class Dead:
    """Stands for a worker's thread that has ended."""

    name = "worker 1"

    def is_alive(self) -> bool:
        return False

    def join(self, timeout: float | None = None) -> None: ...


def test_a_thread_that_has_ended_is_a_problem_until_the_end() -> None:
    bridge = bridge_of(Api())
    bridge.start()
    assert bridge.problem() == ""
    bridge._workers._threads.append(Dead())  # type: ignore[arg-type]
    assert bridge.problem() == "the thread worker 1 has ended"
    bridge.stop(5)
    assert bridge.problem() == ""


def test_a_watch_that_has_ended_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = bridge_of(Api())
    pods = next(one for one in bridge._informers._informers if one.source.what == "pods")
    monkeypatch.setattr(pods, "problem", lambda: "the watch of pods has ended")
    assert bridge.problem() == "the watch of pods has ended"


def test_a_run_that_no_worker_takes_is_a_problem_once_the_caches_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = bridge_of(Api())
    asked: list[float] = []

    def stall(limit: float) -> Stall:
        asked.append(limit)
        return Stall("1", limit + 1, running=False)

    monkeypatch.setattr(bridge._worker_runs._runs, "stall", stall)
    text = "example.com/v1 EchoJob team/j has waited for 601 s, and no worker takes any job"
    assert (bridge.problem(), asked) == (text, [600.0]), "5 min more than a run may take"
    next(one for one in bridge._informers._informers if one.source.what == "pods").has_synced.clear()
    assert bridge.problem() == "", "without the caches the workers wait for the API server"
