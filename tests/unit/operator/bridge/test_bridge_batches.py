"""Runs of roles with long-lived workers: what the bridge hands to the runner, and what ansible-operator gets of it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter, ChangesSince
from ansible_collections.dljob.operator.plugins.module_utils.shared.worker_protocol import WORKER_VAR
from support.ansible_operator import EventReceiver, run_result
from support.fake_kube_api import owned_pod
from support.fed_informers import fill, informer_of, kind_of, without_threads
from support.polling import until

from dljob_operator.ansible_operator_bridge import artifacts, controller
from dljob_operator.ansible_operator_bridge.command import Command, Input, JobNestedTooDeeply
from dljob_operator.ansible_operator_bridge.controller import BridgeController
from dljob_operator.ansible_operator_bridge.parsed_run import ParsedRun, RunExit
from dljob_operator.ansible_operator_bridge.supervise import Flags
from dljob_operator.engine.controller_settings import LARGEST_SHARING, ControllerSettings
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.ready_lines import LONG, Line
from dljob_operator.runner import RunEnding, RunRequest, RunResult, TaskFailure
from dljob_operator.watches import GVK, Watch
from dljob_operator.watches.model import Finalizer

ECHO = GVK("example.com", "v1", "EchoJob")
LONG_LIVED = {"dljob_batchable": True, WORKER_VAR: True}
CRASHED = RunResult(RunEnding.CRASHED, failures=(TaskFailure("", "the process ended"),))
Answer = Callable[[RunRequest], list[RunResult]]


class NoCluster(KubeApi):
    """Refuses everything; `patched` are the paths of the annotations that were to be written."""

    def __init__(self) -> None:
        self.patched: list[str] = []

    def get(self, path: str, query: Any = None) -> dict[str, Any]:
        raise ApiConnectionError("no cluster")

    list_objects = get

    def request(self, method: str, path: str, body: object = None, **_: Any) -> dict[str, Any]:
        if method == "PATCH":
            self.patched.append(path)
        raise ApiConnectionError("no cluster")


def report(*uids: str, ok: bool = True, **more: Any) -> RunResult:
    jobs = [{"uid": uid, "ok": ok, "message": "" if ok else f"{uid} is broken", **more} for uid in uids]
    return RunResult(RunEnding.COMPLETED, reports=({"jobs": jobs, "requeue_after": None},), stats={"ok": 1})


class Runs:
    """A runner whose batches wait until `release` is set, and then end as `answer` says: by default, well."""

    def __init__(self) -> None:
        self.changes = ChangeCounter.create()
        self.requests: list[RunRequest] = []
        self.began = threading.Semaphore(0)
        self.release = threading.Event()
        self.closed = False
        self.answer: Answer = lambda request: [report(*uids_of(request))]

    def run(self, request: RunRequest) -> RunResult:
        self.requests.append(request)
        return report()

    def results(self, request: RunRequest) -> Iterator[RunResult]:
        self.requests.append(request)
        self.began.release()
        assert self.release.wait(10)
        if self.closed:
            yield RunResult(RunEnding.CANCELLED, failures=(TaskFailure("", "the operator is stopping"),))
        else:
            yield from self.answer(request)

    def close(self) -> None:
        self.closed = True
        self.release.set()


def uids_of(request: RunRequest) -> list[str]:
    return [job["metadata"]["uid"] for job in request.values["dljob_batch"]]


class Bridge:
    """A bridge with a filled cache, no cluster, and `threads` workers; shims are threads of a pool."""

    def __init__(self, folder: Path, watch: Watch, threads: int = 1, *, elects_leader: bool = False) -> None:
        self.folder = folder
        self.runs = Runs()
        self.cluster = NoCluster()
        settings, flags = ControllerSettings(max_concurrent=threads), Flags(elects_leader)
        self.controller = BridgeController([watch], self.cluster, self.runs, settings, flags)
        without_threads(self.controller.informers)
        fill(self.controller.informers)
        self.kind = kind_of(self.controller.informers, str(watch.gvk))
        self.kind.api_resource = ApiResource("/apis/example.com/v1", "echojobs")
        self.pool = ThreadPoolExecutor(16)
        self.controller.start()

    def watched(self, type_: str, uid: str, **more: Any) -> None:
        """An event of the watch of the jobs."""
        metadata = {"name": uid, "namespace": "team", "uid": uid, "resourceVersion": "1", **more}
        job = {"apiVersion": ECHO.api_version, "kind": ECHO.kind, "metadata": metadata}
        self.kind.informers[0].handle({"type": type_, "object": job})

    def change_a_pod(self, owner: str, version: str) -> None:
        """An event of the watch of the pods."""
        pod = {**owned_pod(f"{owner}-0", owner), "status": {"podIP": version}}
        pod["metadata"] = {**pod["metadata"], "namespace": "team", "resourceVersion": version}
        informer_of(self.controller.informers, "pods").handle({"type": "ADDED", "object": pod})

    def shim(self, uid: str, *, socket: str = "", version: str = "1", **metadata: Any) -> Future[RunExit]:
        job = {
            "apiVersion": ECHO.api_version,
            "kind": ECHO.kind,
            "metadata": {"name": uid, "namespace": "team", "uid": uid, "resourceVersion": version, **metadata},
            "spec": {"word": "hello"},
        }
        asked = Command(self.folder / uid, f"ident-{uid}", Path("/roles/echo"))
        given = Input({"_x": job, "_x_spec": job["spec"]}, "_x", job, socket, "/events/")
        return self.pool.submit(self.controller.run, ParsedRun(asked, given, self.kind, str(ECHO)))

    def wait_queued(self, count: int) -> None:
        """Wait until that many shims wait for a worker."""
        until(lambda: self.controller.worker_runs.depth == count)

    def stop(self) -> None:
        self.controller.stop(0)
        self.pool.shutdown()


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Bridge]:
    made = Bridge(tmp_path, Watch(ECHO, role=Path("/roles/echo"), vars=LONG_LIVED, manage_status=False))
    yield made
    made.stop()


def batched(bridge: Bridge, *uids: str) -> list[Future[RunExit]]:
    """Runs that wait together, in this order: the only worker has another one."""
    first = bridge.shim("first")
    assert bridge.runs.began.acquire(timeout=10)
    shims = []
    for uid in uids:
        shims.append(bridge.shim(uid))
        bridge.wait_queued(len(shims))
    bridge.runs.release.set()
    assert first.result(10).code == 0
    return shims


def test_a_run_goes_to_a_long_lived_worker(bridge: Bridge) -> None:
    bridge.runs.release.set()
    with EventReceiver("unit-bridge-good") as receiver:
        assert bridge.shim("a", socket=receiver.path).result(10) == RunExit(0, "")
        assert run_result(receiver.events).ok
        assert [event["event"] for event in receiver.events] == ["runner_on_ok"], "which ends its reconcile"
        assert receiver.refused == []
    (request,) = bridge.runs.requests
    assert request.long_lived
    assert uids_of(request) == ["a"]
    assert [path.name for path in (bridge.folder / "a" / "artifacts").iterdir()] == []


@pytest.mark.parametrize(
    ("annotation", "of_entry", "fails", "again_after"),
    [
        (None, {}, False, "36000.000000s"),
        (None, {"reconcile_period": 90.0}, False, "90.000000s"),
        ("2m", {"reconcile_period": 90.0}, False, "120.000000s"),
        ("0s", {}, False, "0.000000s"),
        ("1ns", {}, False, "1.000000s"),
        ("1µs", {}, False, "1.000000s"),
        ("0.999s", {}, False, "1.000000s"),
        ("often", {}, False, "36000.000000s"),  # it has refused it before the run
        ("1ns", {}, True, None),  # ansible-operator repeats it after a backoff
        ("1ns", {"manage_status": True}, False, None),  # it writes no conditions after such an event
        (None, {"finalizer": Finalizer("x/y", vars={"final": True})}, False, None),  # it minds none
    ],
)
def test_a_period_ends_the_reconcile_of_ansible_operator_and_is_not_too_short(
    tmp_path: Path, annotation: str | None, of_entry: dict[str, Any], fails: bool, again_after: str | None
) -> None:
    """ansible-operator takes any period of a tenant, and has no minimum."""
    watch = Watch(ECHO, role=Path("/roles/echo"), vars=LONG_LIVED, **{"manage_status": False, **of_entry})
    bridge = Bridge(tmp_path, watch)
    bridge.runs.answer = lambda request: [report(*uids_of(request), ok=not fails)]
    bridge.runs.release.set()
    annotations = {} if annotation is None else {"ansible.sdk.operatorframework.io/reconcile-period": annotation}
    try:
        with EventReceiver(f"unit-bridge-period-{os.getpid()}") as receiver:
            bridge.shim("a", socket=receiver.path, annotations=annotations).result(10)
            result = run_result(receiver.events)
            assert (result.ok, result.requeue_after) == (not fails, again_after)
            assert (receiver.events[-1]["event"] == "playbook_on_stats") is (again_after is None)
            assert receiver.refused == []
    finally:
        bridge.stop()


@pytest.mark.parametrize("ok", [True, False])
def test_the_variables_of_a_run_that_has_ended_are_removed(bridge: Bridge, ok: bool) -> None:
    """They have the spec three times, and ansible-operator keeps those of every job that there was."""
    bridge.runs.answer = lambda request: [report(*uids_of(request), ok=ok)]
    bridge.runs.release.set()
    variables = bridge.folder / "a" / "env" / "extravars"
    variables.parent.mkdir(parents=True)
    variables.write_text("{}")
    assert bridge.shim("a").result(10).code == (0 if ok else 2)
    assert not variables.exists()


@pytest.mark.parametrize(("asked", "kept"), [(1, 3), (2, 3), (3, 3), (0, 20), (-1, 20), (10**9, 20)])
def test_failed_runs_do_not_fill_the_disk(tmp_path: Path, asked: int, kept: int) -> None:
    """An annotation of a tenant may ask for all of them to be kept."""
    for number in range(120):
        (tmp_path / "artifacts" / str(number)).mkdir(parents=True)
        os.utime(tmp_path / "artifacts" / str(number), (number, number))
    artifacts.rotate(Command(tmp_path, "120", Path("/roles/echo"), rotate=asked))
    left = sorted(int(path.name) for path in (tmp_path / "artifacts").iterdir())
    assert left == list(range(120 - kept, 120))


def test_a_job_that_is_nested_too_deeply_ends_without_a_run(bridge: Bridge) -> None:
    """ansible-operator must neither try again, as after a failed run, nor start the real ansible-runner."""
    folder = bridge.folder / "g" / "v1" / "XJob" / "team" / "a"
    (folder / "env").mkdir(parents=True)
    (folder / "env" / "extravars").write_text("{}")
    with EventReceiver(f"unit-bridge-nested-{os.getpid()}") as receiver:
        asked = Command(folder, "1", Path("/roles/echo"))
        ended = bridge.controller.ignore(JobNestedTooDeeply(asked, receiver.path, "/events/"))
        result = run_result(receiver.events)
        assert (result.ok, result.requeue_after) == (True, "36000.000000s"), "not after the period of its annotation"
    assert ended.code == 0
    assert bridge.runs.requests == []
    assert not (folder / "env" / "extravars").exists()
    assert (folder / "artifacts").is_dir(), "for the link of ansible-operator"


def test_a_worker_reconciles_a_job_whose_pods_change_without_an_annotation(bridge: Bridge) -> None:
    """Where that fails, ansible-operator tries again, with its backoff; then the next change needs none either."""
    bridge.runs.release.set()
    bridge.watched("ADDED", "a")
    assert bridge.shim("a").result(10).code == 0
    bridge.change_a_pod("a", "5")
    until(lambda: len(bridge.runs.requests) == 2)
    assert (uids_of(bridge.runs.requests[1]), bridge.cluster.patched) == (["a"], [])
    assert [pod["metadata"]["name"] for pod in (bridge.runs.requests[1].snapshot or {})["a"]["Pod"]] == ["a-0"]
    bridge.runs.answer = lambda request: [report(*uids_of(request), ok=False)]
    bridge.change_a_pod("a", "6")
    until(lambda: bridge.cluster.patched == ["/apis/example.com/v1/namespaces/team/echojobs/a"])
    assert len(bridge.runs.requests) == 3
    bridge.runs.answer = lambda request: [report(*uids_of(request))]
    assert bridge.shim("a").result(10).code == 0
    bridge.change_a_pod("a", "7")
    until(lambda: len(bridge.runs.requests) == 5)
    assert len(bridge.cluster.patched) == 1


@pytest.mark.parametrize(
    ("elects_leader", "of_entry", "metadata"),
    [
        (True, {}, {}),
        (False, {"manage_status": True}, {}),
        (False, {"vars": {"dljob_batchable": True}}, {}),
        (False, {}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    ],
    ids=["another replica may lead", "conditions", "a role with other tasks", "leaving"],
)
def test_other_jobs_whose_pods_change_are_annotated(
    tmp_path: Path, elects_leader: bool, of_entry: dict[str, Any], metadata: dict[str, Any]
) -> None:
    watch = Watch(ECHO, role=Path("/roles/echo"), **{"vars": LONG_LIVED, "manage_status": False, **of_entry})
    bridge = Bridge(tmp_path, watch, elects_leader=elects_leader)
    try:
        bridge.runs.release.set()
        bridge.watched("ADDED", "a", **metadata)
        assert bridge.shim("a").result(10).code == 0
        bridge.change_a_pod("a", "5")
        until(lambda: bool(bridge.cluster.patched))
        assert len(bridge.runs.requests) == 1
    finally:
        bridge.stop()


def test_a_job_that_is_deleted_while_its_run_waits_leaves_nothing(bridge: Bridge) -> None:
    bridge.runs.answer = lambda request: [report(*uids_of(request), ok=True)]
    bridge.watched("ADDED", "a")
    first = bridge.shim("first")
    assert bridge.runs.began.acquire(timeout=10)
    waiting = bridge.shim("a")
    bridge.wait_queued(1)
    bridge.watched("DELETED", "a")
    bridge.runs.release.set()
    assert (first.result(10).code, waiting.result(10).code) == (0, 0)
    requeues, changes = bridge.controller.requeues, bridge.runs.changes
    deleted = changes.count("a")
    requeues.add("a", Flow(str(ECHO), "team"))
    until(lambda: changes.count("a") > deleted, "its annotation finds no job")
    turn = requeues.request("a", reconciled_before=True)
    assert turn.line is Line.OWNED, "as of a job of which nothing is known"


def test_runs_that_wait_together_share_a_batch(bridge: Bridge) -> None:
    for shim in batched(bridge, "a", "b", "c"):
        assert shim.result(10).code == 0
    assert [uids_of(request) for request in bridge.runs.requests] == [["first"], ["a", "b", "c"]]


def test_a_job_that_owns_many_objects_shares_no_batch(bridge: Bridge) -> None:
    bridge.watched("ADDED", "large")
    pods = informer_of(bridge.controller.informers, "pods")
    for index in range(LARGEST_SHARING + 1):
        pods.store.put(owned_pod(f"large-{index}", "large"))
    for shim in batched(bridge, "a", "large", "b"):
        assert shim.result(10).code == 0
    assert [uids_of(request) for request in bridge.runs.requests] == [["first"], ["a", "b"], ["large"]]


def test_a_postponed_job_runs_in_a_later_batch(bridge: Bridge) -> None:
    """Its shim waits meanwhile: ansible-operator takes its end for the outcome of the run."""
    both = RunResult(RunEnding.COMPLETED, reports=({"jobs": [{"uid": "a"}, {"uid": "b", "postponed": True}]},))
    results = iter([[report("first")], [both], [report("b", ok=False)]])
    bridge.runs.answer = lambda request: next(results)
    a, b = batched(bridge, "a", "b")
    assert (a.result(10).code, b.result(10).code) == (0, 2)
    assert [uids_of(request) for request in bridge.runs.requests] == [["first"], ["a", "b"], ["b"]]


def test_a_run_that_took_long_makes_its_namespace_slow(tmp_path: Path) -> None:
    """Its next runs leave a worker to others."""
    bridge = Bridge(tmp_path, Watch(ECHO, role=Path("/roles/echo"), vars=LONG_LIVED), threads=2)
    bridge.runs.answer = lambda request: [report(*uids_of(request), seconds=LONG)]
    bridge.runs.release.set()
    assert bridge.shim("a").result(10).code == 0
    bridge.runs.release.clear()
    bridge.shim("b")
    until(lambda: len(bridge.runs.requests) == 2)
    bridge.shim("c")
    bridge.wait_queued(1)
    bridge.shim("d", namespace="other")
    until(lambda: len(bridge.runs.requests) == 3)
    assert [uids_of(request) for request in bridge.runs.requests] == [["a"], ["b"], ["d"]]
    bridge.stop()


def test_a_failed_job_of_a_batch_fails_alone(bridge: Bridge) -> None:
    def answer(request: RunRequest) -> list[RunResult]:
        bad = [uid for uid in uids_of(request) if uid == "bad"]
        partial = report(*bad, ok=False)
        return [
            RunResult(partial.ending, reports=partial.reports, is_partial=True),
            report(*(uid for uid in uids_of(request) if uid != "bad")),
        ]

    bridge.runs.answer = answer
    with EventReceiver("unit-bridge-bad") as receiver:
        first = bridge.shim("first")
        assert bridge.runs.began.acquire(timeout=10)
        good, bad = bridge.shim("good"), bridge.shim("bad", socket=receiver.path)
        bridge.wait_queued(2)
        bridge.runs.release.set()
        assert (first.result(10).code, good.result(10).code) == (0, 0)
        assert bad.result(10) == RunExit(2, "failed: bad is broken\n")
        result = run_result(receiver.events)
        assert (result.ok, result.messages) == (False, ["bad is broken"])
        assert receiver.events[-1]["event_data"]["failures"] == {"localhost": 1}
    artifacts = bridge.folder / "bad" / "artifacts" / "ident-bad"
    assert (artifacts / "stdout").read_text() == "failed: bad is broken\n"


def test_a_finished_job_does_not_wait_for_the_others_of_its_batch(bridge: Bridge) -> None:
    slow = threading.Event()

    def answer(request: RunRequest) -> Iterator[RunResult]:
        if uids_of(request) == ["first"]:
            yield report("first")
            return
        yield RunResult(RunEnding.COMPLETED, reports=report("quick").reports, is_partial=True)
        assert slow.wait(10)
        yield report("slow")

    bridge.runs.answer = cast(Answer, answer)
    quick, other = batched(bridge, "quick", "slow")
    assert quick.result(10).code == 0
    assert not other.done()
    slow.set()
    assert other.result(10).code == 0


def test_jobs_of_a_crashed_batch_fail_and_then_run_alone(bridge: Bridge) -> None:
    bridge.runs.answer = lambda request: [CRASHED] if len(uids_of(request)) > 1 else [report(*uids_of(request))]
    for shim in batched(bridge, "a", "b"):
        assert shim.result(10) == RunExit(2, "failed: the process ended\n")
    bridge.runs.release.clear()
    while bridge.runs.began.acquire(blocking=False):
        pass
    for shim in batched(bridge, "a", "b"):
        assert shim.result(10).code == 0
    assert [len(uids_of(request)) for request in bridge.runs.requests] == [1, 2, 1, 1, 1]


def test_a_repeated_run_waits_for_the_first_and_uses_the_newest_job(bridge: Bridge) -> None:
    killed = bridge.shim("a", version="5")
    assert bridge.runs.began.acquire(timeout=10)
    again = bridge.shim("a", version="6")
    bridge.wait_queued(1)
    newest = bridge.shim("a", version="10")
    bridge.wait_queued(2)
    assert len(bridge.runs.requests) == 1
    bridge.runs.release.set()
    assert [shim.result(10).code for shim in (killed, again, newest)] == [0, 0, 0]
    versions = [job["metadata"]["resourceVersion"] for r in bridge.runs.requests for job in r.values["dljob_batch"]]
    assert versions == ["5", "10"]


def test_while_a_user_changes_another_job_writes_are_held_back(bridge: Bridge) -> None:
    shims = batched(bridge, "a")
    assert shims[0].result(10).code == 0
    assert [request.is_contended for request in bridge.runs.requests] == [False, True]


@pytest.mark.parametrize(("threads", "known"), [(1, None), (2, {"": 3})])
def test_a_run_knows_the_changes_before_it_where_others_need_not_wait_for_it(
    tmp_path: Path, threads: int, known: dict[str, int] | None
) -> None:
    bridge = Bridge(tmp_path, Watch(ECHO, role=Path("/roles/echo"), vars=LONG_LIVED), threads)
    try:
        bridge.watched("ADDED", "a")
        created = bridge.runs.changes.count("a")
        for _ in range(3 - created):
            bridge.runs.changes.increment("other")
        shim = bridge.shim("a")
        bridge.runs.release.set()
        assert shim.result(10).code == 0
        assert [request.changes for request in bridge.runs.requests] == [known]
        assert [request.taken for request in bridge.runs.requests] == [{"": 3, "a": created}]
    finally:
        bridge.stop()


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_job_that_is_deleted_while_its_run_waits_may_have_changed(bridge: Bridge, is_deleted: bool) -> None:
    """The worker then asks the API server for it, and creates nothing of a job that is gone."""
    first = bridge.shim("first")
    assert bridge.runs.began.acquire(timeout=10)
    bridge.watched("ADDED", "late")
    late = bridge.shim("late")
    bridge.wait_queued(1)
    if is_deleted:
        bridge.watched("DELETED", "late")
    bridge.runs.release.set()
    assert (first.result(10).code, late.result(10).code) == (0, 0)
    request = bridge.runs.requests[-1]
    assert uids_of(request) == ["late"]
    assert ChangesSince(bridge.runs.changes, request.taken or {}).of("late") is is_deleted


def test_an_internal_error_ends_the_runs_of_its_batch(bridge: Bridge) -> None:
    def answer(request: RunRequest) -> list[RunResult]:
        raise RuntimeError("a bug")

    bridge.runs.answer = answer
    bridge.runs.release.set()
    found = bridge.shim("a").result(10)
    assert found.code == 2
    assert "internal error" in found.output
    bridge.runs.answer = lambda request: [report(*uids_of(request))]
    assert bridge.shim("a").result(10).code == 0


def test_the_end_of_the_operator_ends_all_runs_without_a_result(bridge: Bridge) -> None:
    with EventReceiver("unit-bridge-end") as receiver:
        begun = bridge.shim("begun", socket=receiver.path)
        assert bridge.runs.began.acquire(timeout=10)
        waits = bridge.shim("waits", socket=receiver.path)
        bridge.wait_queued(1)
        bridge.controller.stop(0)
        assert (begun.result(10).code, waits.result(10).code) == (2, 2)
        assert bridge.shim("late", socket=receiver.path).result(10).code == 2
        assert receiver.events == [], "without the last event ansible-operator repeats the run"


@pytest.mark.parametrize(
    ("watch", "metadata"),
    [
        (Watch(ECHO, role=Path("/roles/echo"), vars={"dljob_batchable": True}), {}),
        (
            Watch(ECHO, role=Path("/roles/echo"), vars=LONG_LIVED, finalizer=Finalizer("x/y", vars={"final": True})),
            {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]},
        ),
    ],
    ids=["another role", "finalizer"],
)
def test_other_runs_have_a_process_of_their_own(tmp_path: Path, watch: Watch, metadata: dict[str, Any]) -> None:
    bridge = Bridge(tmp_path, watch)
    bridge.runs.release.set()
    assert bridge.shim("a", **metadata).result(10).code == 0
    (request,) = bridge.runs.requests
    assert not request.long_lived
    assert "dljob_batch" not in request.values
    bridge.stop()


def test_without_caches_a_run_has_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads from the API server. Its variables are read again, since a run that waits for a worker keeps none."""
    monkeypatch.setattr(controller, "FIRST_LIST", 0)
    role = tmp_path / "roles" / "echo"
    watch = Watch(ECHO, role=role, vars=LONG_LIVED)
    runs = Runs()
    made = BridgeController([watch], NoCluster(), runs, ControllerSettings(max_concurrent=1), Flags())
    folder = tmp_path / ECHO.group / ECHO.version / ECHO.kind / "team" / "a"
    (folder / "env").mkdir(parents=True)
    metadata = {"name": "a", "namespace": "team", "uid": "a", "resourceVersion": "1"}
    job = {"apiVersion": ECHO.api_version, "kind": ECHO.kind, "metadata": metadata, "spec": {}}
    extravars = {"_example_com_echojob": job, "_example_com_echojob_spec": {}, "word": "hello"}
    (folder / "env" / "extravars").write_text(json.dumps(extravars))
    argv = ["run", str(folder), "--role", "echo", "--roles-path", str(role.parent), "-i", "1"]
    parsed = made.prepare(argv, tmp_path)
    assert parsed.is_for_worker
    assert parsed.given.wrapped == {}
    assert made.run(parsed).code == 0
    assert not (folder / "env" / "extravars").exists()
    (request,) = runs.requests
    assert not request.long_lived
    assert request.values["word"] == "hello"
    assert request.snapshot is None
