"""The controller beside an API server in memory: which runs it starts, and what it does with their outcomes."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ANY_JOB, ChangeCounter
from ansible_collections.dljob.operator.plugins.module_utils.shared.worker_protocol import BATCH_VAR, WORKER_VAR
from support.fake_kube_api import ECHO, ECHO_JOBS, FakeKubeApi, owned_pod
from support.fed_informers import fill, informer_of, kind_of, without_threads
from support.polling import until

from dljob_operator.engine import controller as module
from dljob_operator.engine.cache.predicates import RECONCILE_PERIOD_ANNOTATION
from dljob_operator.engine.controller import Controller
from dljob_operator.engine.controller_settings import LARGEST_SHARING, ControllerSettings
from dljob_operator.engine.kube import ApiConnectionError
from dljob_operator.engine.queue.fair_queue import Flow
from dljob_operator.engine.queue.progress import MARGIN
from dljob_operator.engine.queue.queue import NextRun, WorkQueue
from dljob_operator.engine.queue.ready_lines import LONG
from dljob_operator.engine.queue.recent_changes import CONTENTION
from dljob_operator.engine.serving.metrics import Metrics
from dljob_operator.failed_check import FailedCheck
from dljob_operator.runner import RunEnding, RunRequest, RunResult, TaskFailure
from dljob_operator.watches import Finalizer, Watch

OK = RunResult(RunEnding.COMPLETED, stats={"ok": 1})
FAILED = RunResult(RunEnding.COMPLETED, failures=(TaskFailure("copy", "no such file"),))
CRASHED = RunResult(RunEnding.CRASHED, failures=(TaskFailure("", "the process ended"),))
BATCHABLE, LONG_LIVED = {"dljob_batchable": True}, {"dljob_batchable": True, WORKER_VAR: True}
OURS, OTHER = "example.com/echo", "example.com/other"
FINALIZER = Finalizer(OURS, vars={"state": "absent"})
DELETED = {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 0}
OBJECT = "_example_com_echojob"


class Runner:
    """Records requests and answers each with `answer`."""

    def __init__(self) -> None:
        self.changes = ChangeCounter.create()
        self.requests: list[RunRequest] = []
        self.answer: Callable[[RunRequest], Iterator[RunResult]] = lambda request: iter([OK])
        self.finalizing: list[RunRequest] = []
        self.finalized = OK
        self.closed = False
        self.requested = threading.Event()
        self.prepared: list[str] = []

    def prepare(self, target: str) -> None:
        self.prepared.append(target)

    def run(self, request: RunRequest) -> RunResult:
        self.finalizing.append(request)
        return self.finalized

    def results(self, request: RunRequest) -> Iterator[RunResult]:
        self.requests.append(request)
        self.requested.set()
        return self.answer(request)

    def close(self) -> None:
        self.closed = True


class Bench:
    """A controller whose only worker is the test and whose informers the test feeds; `now` is the queue's time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, watch: Watch = Watch(ECHO), **settings: Any) -> None:  # noqa: B008
        self.now = 1000.0
        monkeypatch.setattr(module, "WorkQueue", functools.partial(WorkQueue, lambda: self.now))
        self.api, self.runner, self.metrics = FakeKubeApi(), Runner(), Metrics()
        self.controller = Controller(
            [watch], self.api, self.runner, ControllerSettings(**settings), metrics=self.metrics
        )
        self.informers = self.controller.informers
        self.kind = kind_of(self.informers, str(watch.gvk))
        self.kind.api_resource = ECHO_JOBS  # as its informer has found it
        self.waited: list[Collection[Any]] = []
        monkeypatch.setattr(self.informers, "wait_for", self.waited.append)

    def fill(self) -> None:
        """Let the first lists of all informers be complete."""
        fill(self.informers)

    def add(self, name: str = "digits", uid: str = "1", **fields: Any) -> dict[str, Any]:
        job = self.api.add_job(name, uid, **fields)
        self.observe("ADDED", job)
        return job

    def observe(self, event: str, obj: Mapping[str, Any]) -> None:
        self.kind.informers[0].handle({"type": event, "object": obj})

    def take(self) -> list[str]:
        return self.controller.take(0) or []

    def work(self) -> list[str]:
        """Reconcile what the queue has next; return its keys."""
        keys = self.take()
        self.controller.work.handle(keys)
        return keys

    def conditions(self, name: str = "digits") -> dict[str, str]:
        found = self.api.job(name).get("status", {}).get("conditions", ())
        return {condition["type"]: condition["status"] for condition in found}

    def events(self) -> list[str]:
        return [event["message"] for event in self.api.events()]

    def reconciled(self, result: str) -> float:
        labels = {"kind": str(ECHO), "result": result}
        return self.metrics.registry.get_sample_value("dljob_reconciles_total", labels) or 0


Make = Callable[..., Bench]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    return functools.partial(Bench, monkeypatch)


def reports(*jobs: Mapping[str, Any], partial: bool = False) -> RunResult:
    return RunResult(RunEnding.COMPLETED, reports=({"jobs": list(jobs)},), is_partial=partial)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    found: dict[str, Any] = record.__dict__["dljob_fields"]
    return found


# --- runs


@pytest.mark.parametrize(("entry", "prepared"), [(LONG_LIVED, [str(ECHO)]), (BATCHABLE, [])])
def test_a_long_lived_worker_starts_when_the_first_job_of_its_kind_is_listed(
    make: Make, entry: dict[str, Any], prepared: list[str]
) -> None:
    bench = make(Watch(ECHO, vars=entry))
    bench.add()
    bench.add("letters", "2")
    assert bench.runner.prepared == prepared


def test_a_job_is_run_with_its_variables_and_gets_its_conditions(make: Make) -> None:
    bench = make(run_timeout=20.0)
    job = bench.add(spec={"say": "hello"})
    assert bench.work() == ["1"]
    (request,) = bench.runner.requests
    assert (request.target, request.timeout, request.long_lived) == (str(ECHO), 20.0, False)
    assert request.values["say"] == "hello"
    assert request.values[OBJECT] == job
    assert request.snapshot is not None
    assert request.snapshot["1"]["Pod"] == []
    assert request.cluster_info is not None
    assert bench.conditions() == {"Running": "True", "Failure": "False", "Successful": "True"}
    assert bench.reconciled("ok") == 1
    assert bench.metrics.registry.get_sample_value("dljob_runs_total", {"kind": str(ECHO)}) == 1


def test_a_run_knows_whether_users_wait_for_other_jobs(make: Make) -> None:
    bench = make()
    for name in ("first", "soon after", "later"):
        bench.add(name, name)
        bench.work()
        bench.now += CONTENTION if name == "soon after" else 0.1
    assert [request.is_contended for request in bench.runner.requests] == [False, True, False]


def test_a_change_after_the_job_was_read_is_news_to_its_run(make: Make) -> None:
    bench = make()
    bench.add("large", "1")
    bench.work()
    (request,) = bench.runner.requests
    assert request.changes == bench.runner.changes.counts([])
    bench.add("other", "2")
    assert request.changes[ANY_JOB] + 1 == bench.runner.changes.count()


def continue_with(bench: Bench, name: str = "large", uid: str = "1") -> None:
    """Let a run of the job end before it has written everything, and begin the next one."""
    bench.add(name, uid)
    (key,) = bench.take()
    bench.controller.queue.done(key, ok=True, next_run=NextRun.CONTINUING)


def test_only_a_run_that_leaves_a_worker_to_the_others_knows_whether_its_job_changes(make: Make) -> None:
    """Others may occupy all workers, so they stay short beside others: see ..api.budget."""
    bench = make()
    continue_with(bench)
    bench.work()
    bench.add("other", "2")
    bench.work()
    continuing, other = bench.runner.requests
    assert (continuing.changes, other.changes) == ({ANY_JOB: 1, "1": 1}, {ANY_JOB: 2})
    bench.add("large", "1", metadata={"generation": 2, "resourceVersion": "9"})
    assert bench.runner.changes.count("1") == 2


@pytest.mark.parametrize("threads", [1, 4])
def test_every_run_knows_whether_its_jobs_have_changed_since_they_were_taken(make: Make, threads: int) -> None:
    """So that a worker does not begin to write for one that was deleted while it waited for the others."""
    bench = make(Watch(ECHO, vars=BATCHABLE), max_concurrent=threads)
    bench.add("a", "1")
    bench.add("b", "2")
    bench.runner.answer = lambda request: iter([reports({"uid": "1"}, {"uid": "2"})])
    assert bench.work() == ["1", "2"]
    assert [request.taken for request in bench.runner.requests] == [{ANY_JOB: 2, "1": 1, "2": 1}]


def test_a_change_while_the_job_is_read_is_news_to_its_run(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make()
    continue_with(bench)
    find, before = bench.informers.find, bench.runner.changes.counts(["1"])

    def found_as_it_changes(key: str) -> Any:
        found = find(key)
        bench.runner.changes.increment(key)
        return found

    monkeypatch.setattr(bench.informers, "find", found_as_it_changes)
    bench.work()
    assert [(request.changes, request.taken) for request in bench.runner.requests] == [(before, before)]


def test_on_one_thread_a_large_job_makes_way_for_others_by_itself(make: Make) -> None:
    bench = make(max_concurrent=1)
    bench.add("large", "1")
    bench.work()
    assert [request.changes for request in bench.runner.requests] == [None]


def test_a_job_that_is_deleted_while_its_batch_is_prepared_does_not_disturb_the_others(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make(Watch(ECHO, vars=BATCHABLE))
    jobs = [bench.add(name, name) for name in ("a", "b")]
    find = bench.informers.find

    def deleted_meanwhile(key: str) -> Any:
        found = find(key)
        bench.observe("DELETED", jobs[0])
        return found

    monkeypatch.setattr(bench.informers, "find", deleted_meanwhile)
    bench.runner.answer = lambda request: iter([reports({"uid": "a"}, {"uid": "b"})])
    assert bench.work() == ["a", "b"]
    assert [request.target for request in bench.runner.requests] == [str(ECHO)]
    assert (bench.reconciled("ok"), bench.reconciled("failed")) == (2, 0)


def test_a_failed_run_is_in_the_conditions_and_an_event_and_is_repeated_after_its_backoff(make: Make) -> None:
    bench = make()
    bench.runner.answer = lambda request: iter([FAILED])
    bench.add()
    bench.work()
    assert bench.conditions() == {"Running": "False", "Failure": "True", "Successful": "False"}
    assert bench.events() == ["copy: no such file"]
    assert bench.reconciled("failed") == 1
    assert bench.take() == []
    bench.now += 1.0
    assert bench.take() == ["1"]


@pytest.mark.parametrize(
    ("watch", "result", "has_resource"),
    [
        (Watch(ECHO, manage_status=False), OK, True),
        (Watch(ECHO), RunResult(RunEnding.CANCELLED), True),
        (Watch(ECHO), OK, False),
    ],
    ids=["the role writes them itself", "cancelled", "no longer served"],
)
def test_no_conditions_are_written(make: Make, watch: Watch, result: RunResult, has_resource: bool) -> None:
    bench = make(watch)
    bench.runner.answer = lambda request: iter([result])
    bench.add()
    if not has_resource:
        bench.kind.api_resource = None
    bench.work()
    assert len(bench.runner.requests) == 1
    assert bench.api.requests() == []


@pytest.mark.parametrize("status", [500, 0])
def test_conditions_that_cannot_be_written_do_not_make_the_reconcile_fail(
    make: Make, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    bench = make()
    bench.add()
    bench.api.fail("PATCH", status)
    bench.work()
    assert bench.reconciled("ok") == 1
    (record,) = [record for record in caplog.records if record.message == "cannot write the conditions"]
    assert fields_of(record)["name"] == "digits"
    assert fields_of(record)["error"]


@pytest.mark.parametrize(
    ("variables", "jobs", "batch", "long_lived"),
    [
        ({}, 1, False, False),
        (BATCHABLE, 1, False, False),
        (BATCHABLE, 2, True, False),
        (LONG_LIVED, 1, True, True),
        (LONG_LIVED, 2, True, True),
    ],
)
def test_how_jobs_are_passed_to_a_role(
    make: Make, variables: dict[str, Any], jobs: int, batch: bool, long_lived: bool
) -> None:
    bench = make(Watch(ECHO, vars=variables))
    for number in range(jobs):
        bench.add(f"job-{number}", str(number))
    bench.work()
    (request,) = bench.runner.requests
    names = [f"job-{number}" for number in range(jobs)]
    assert [job["metadata"]["name"] for job in request.values.get(BATCH_VAR, ())] == (names if batch else [])
    assert (OBJECT in request.values, request.long_lived) == (not batch, long_lived)
    assert request.snapshot is not None
    assert list(request.snapshot) == [str(number) for number in range(jobs)]


@pytest.mark.parametrize(("variables", "expected"), [({}, [1, 1, 1]), (BATCHABLE, [2, 1, 0])])
def test_a_batch_has_at_most_the_largest_number_of_jobs(
    make: Make, variables: dict[str, Any], expected: list[int]
) -> None:
    bench = make(Watch(ECHO, vars=variables), largest_batch=2)
    for number in range(3):
        bench.add(f"job-{number}", str(number))
    assert [len(bench.take()) for _ in range(3)] == expected


def test_a_job_that_owns_many_objects_shares_no_run(make: Make) -> None:
    """After a start all large jobs wait, and a worker that gets the objects of 25 of them needs their memory."""
    bench = make(Watch(ECHO, vars=BATCHABLE))
    pods = informer_of(bench.informers, "pods")
    for number in range(5):
        bench.add(f"job-{number}", str(number))
    for number, owned in ((0, LARGEST_SHARING + 1), (1, LARGEST_SHARING), (3, LARGEST_SHARING + 1)):
        for index in range(owned):
            pods.store.put(owned_pod(f"job-{number}-{index}", str(number)))
    assert [bench.take() for _ in range(4)] == [["0"], ["1", "2", "4"], ["3"], []]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_job_whose_reconcile_took_long_leaves_a_thread_to_others(make: Make, is_deleted: bool) -> None:
    """Also one that was deleted meanwhile: a script may create and delete one after the other."""
    bench = make(Watch(ECHO, vars=BATCHABLE))
    first = bench.add("first", "1")

    def answer(request: RunRequest) -> Iterator[RunResult]:
        if is_deleted:
            bench.observe("DELETED", first)
        yield reports({"uid": "1", "seconds": LONG})

    bench.runner.answer = answer
    bench.work()
    for uid in ("2", "3"):
        bench.add(f"job-{uid}", uid)
    took: list[list[str]] = []
    thread = threading.Thread(target=lambda: took.append(bench.take()))
    thread.start()
    thread.join(30)
    bench.add("last", "4")
    assert (took, bench.take()) == ([["2", "3"]], [])


def test_a_postponed_job_gets_no_conditions_and_has_its_turn(make: Make) -> None:
    bench = make(Watch(ECHO, vars=BATCHABLE))
    bench.add("first", "1")
    bench.add("second", "2")
    bench.runner.answer = lambda request: iter([reports({"uid": "1"}, {"uid": "2", "postponed": True})])
    assert bench.work() == ["1", "2"]
    assert bench.conditions("first")
    assert not bench.conditions("second")
    assert (bench.reconciled("ok"), bench.reconciled("failed")) == (1, 0)
    assert bench.take() == ["2"]


def test_a_job_has_its_outcome_when_it_is_reported_and_not_at_the_end_of_the_run(make: Make) -> None:
    bench = make(Watch(ECHO, vars=BATCHABLE))
    bench.add("first", "1")
    bench.add("second", "2")
    seen: list[tuple[float, bool, bool]] = []

    def answer(request: RunRequest) -> Iterator[RunResult]:
        yield reports({"uid": "1", "wrote": [["pod", "7"]]}, partial=True)
        seen.append((bench.reconciled("ok"), bool(bench.conditions("first")), bool(bench.conditions("second"))))
        yield reports({"uid": "2"})

    bench.runner.answer = answer
    assert bench.work() == ["1", "2"]
    assert seen == [(1, True, False)]
    assert bench.reconciled("ok") == 2
    assert bench.conditions("second")["Successful"] == "True"
    assert bench.waited == [{("pod", "7")}, frozenset()]
    assert bench.metrics.registry.get_sample_value("dljob_runs_total", {"kind": str(ECHO)}) == 1


def test_the_cache_observes_what_a_run_wrote_before_its_job_returns_to_the_queue(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make()
    bench.runner.answer = lambda request: iter([reports({"uid": "1", "wrote": [["pod", "7"]]})])
    before: list[float] = []
    monkeypatch.setattr(bench.informers, "wait_for", lambda wrote: before.append(bench.reconciled("ok")))
    bench.add()
    bench.work()
    assert before == [0]


def test_a_job_that_a_shared_run_did_not_report_fails_and_runs_alone(make: Make) -> None:
    bench = make(Watch(ECHO, vars=BATCHABLE))
    bench.add("first", "1")
    bench.add("second", "2")

    def answer(request: RunRequest) -> Iterator[RunResult]:
        yield reports({"uid": "1"}, partial=True)
        yield CRASHED

    bench.runner.answer = answer
    bench.work()
    assert (bench.reconciled("ok"), bench.reconciled("failed")) == (1, 1)
    assert bench.events() == ["the process ended"]
    for uid in ("3", "4"):
        bench.add(f"job-{uid}", uid, status={"state": "Running"})  # not urgent, as a job after its backoff
    bench.now += 1.0
    assert sorted([bench.take(), bench.take()]) == [["2"], ["3", "4"]]


def test_what_several_jobs_have_changed_is_not_logged_as_a_change_of_each(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "dljob_operator")
    bench = make(Watch(ECHO, vars=BATCHABLE))
    bench.add("first", "1")
    bench.add("second", "2")
    jobs = [{"uid": "1"}, {"uid": "2", "wrote": [["pod", "7"]]}]
    bench.runner.answer = lambda request: iter(
        [RunResult(RunEnding.COMPLETED, stats={"changed": 1}, reports=({"jobs": jobs},))]
    )
    bench.work()
    found = [fields_of(record) for record in caplog.records if record.message == "reconciled"]
    assert [(one["name"], one["changed"], one["batch"]) for one in found] == [("first", False, 2), ("second", True, 2)]


def test_a_job_alone_in_its_run_needs_no_report(make: Make) -> None:
    bench = make(Watch(ECHO, vars=LONG_LIVED))
    bench.add()
    bench.work()
    assert bench.reconciled("ok") == 1


def test_after_an_internal_error_the_run_is_read_to_its_end(make: Make) -> None:
    bench = make(Watch(ECHO, vars=BATCHABLE))
    bench.add("first", "1")
    bench.add("second", "2")
    ended = []

    def answer(request: RunRequest) -> Iterator[RunResult]:
        yield reports({"no uid": "1"}, partial=True)
        ended.append(True)
        yield OK

    bench.runner.answer = answer
    with pytest.raises(KeyError):
        bench.work()
    assert ended == [True]


def test_what_a_large_job_has_left_to_write_follows_at_once(make: Make) -> None:
    bench = make()
    bench.runner.answer = lambda request: iter([reports({"uid": "1", "continues": True})])
    bench.add()
    bench.work()
    assert bench.take() == ["1"]


@pytest.mark.parametrize(("threads", "at_once"), [(1, 1), (2, 1), (3, 2)])
def test_large_jobs_leave_a_thread_to_others(make: Make, threads: int, at_once: int) -> None:
    bench = make(max_concurrent=threads)
    bench.runner.answer = lambda request: iter([reports(*({"uid": uid, "continues": True} for uid in "12"))])
    for uid in "12":
        bench.add(f"job-{uid}", uid)
        bench.work()
    assert [len(bench.take()) for _ in range(3)] == [1] * at_once + [0] * (3 - at_once)


def test_a_large_job_that_was_deleted_leaves_its_place_to_the_next(make: Make) -> None:
    bench = make()
    bench.runner.answer = lambda request: iter([reports(*({"uid": uid, "continues": True} for uid in "12"))])
    for uid in "12":
        bench.add(f"job-{uid}", uid)
        bench.work()
    (first,) = keys = bench.take()
    assert bench.take() == []
    bench.observe("DELETED", bench.api.job(f"job-{first}"))
    bench.controller.work.handle(keys)
    assert bench.take() == ["2" if first == "1" else "1"]


def test_jobs_that_are_deleted_are_left_out_of_a_batch(make: Make) -> None:
    bench = make(Watch(ECHO, vars=BATCHABLE))
    first = bench.add("first", "1")
    bench.add("second", "2", metadata=DELETED)
    bench.add("third", "3")
    keys = bench.take()
    assert keys == ["1", "2", "3"]
    bench.observe("DELETED", first)
    bench.controller.work.handle(keys)
    (request,) = bench.runner.requests
    assert request.values[OBJECT]["metadata"]["name"] == "third"
    assert bench.reconciled("ok") == 1


def test_after_an_internal_error_the_jobs_are_reconciled_again(make: Make) -> None:
    bench = make(Watch(ECHO, vars=BATCHABLE))

    def answer(request: RunRequest) -> Iterator[RunResult]:
        raise ValueError("broken")

    bench.runner.answer = answer
    bench.add("first", "1")
    bench.add("second", "2")
    keys = bench.take()
    with pytest.raises(ValueError, match="broken"):
        bench.controller.work.handle(keys)
    for key in keys:
        bench.controller.work.abandon(key)
    assert bench.take() == []
    bench.now += 1.0
    assert bench.take() == ["1", "2"]


# --- finalizers


def test_the_finalizer_is_added_before_the_first_run(make: Make) -> None:
    bench = make(Watch(ECHO, finalizer=FINALIZER))
    bench.add(metadata={"managedFields": [{"manager": "kubectl"}]})
    bench.work()
    assert bench.api.job()["metadata"]["finalizers"] == [OURS]
    given = bench.runner.requests[0].values[OBJECT]["metadata"]
    assert given["finalizers"] == [OURS], "the run gets the object as it was written"
    assert "managedFields" not in given
    assert bench.api.requests()[0] == "PATCH echojobs"


def test_a_job_that_has_the_finalizer_is_not_written(make: Make) -> None:
    bench = make(Watch(ECHO, finalizer=FINALIZER, manage_status=False))
    bench.add(metadata={"finalizers": [OURS]})
    bench.work()
    assert (len(bench.runner.requests), bench.api.requests()) == (1, [])


@pytest.mark.parametrize("status", [409, 0])
def test_a_job_without_its_finalizer_is_not_run(make: Make, status: int) -> None:
    bench = make(Watch(ECHO, finalizer=FINALIZER, vars=BATCHABLE, manage_status=False))
    bench.add("first", "1")
    bench.add("second", "2")
    bench.api.fail("PATCH", status)
    bench.work()
    (request,) = bench.runner.requests
    assert request.values[OBJECT]["metadata"]["name"] == "second"
    (message,) = bench.events()
    assert message.startswith("cannot add the finalizer: ")
    assert (bench.reconciled("ok"), bench.reconciled("failed")) == (1, 1)


def test_a_batch_of_which_no_finalizer_can_be_added_starts_no_run(make: Make) -> None:
    bench = make(Watch(ECHO, finalizer=FINALIZER))
    bench.add()
    bench.api.fail("PATCH", 403)
    bench.work()
    assert bench.runner.requests == []


def test_the_run_for_a_deletion_precedes_the_removal_of_the_finalizer(make: Make) -> None:
    bench = make(Watch(ECHO, finalizer=FINALIZER, vars={"state": "present"}), run_timeout=20.0)
    bench.add(metadata={"finalizers": [OURS, OTHER], **DELETED})
    bench.work()
    (request,) = bench.runner.finalizing
    assert (request.target, request.timeout, request.values["state"]) == (str(ECHO), 20.0, "absent")
    assert request.cluster_info is None
    assert request.snapshot is not None
    assert bench.api.job()["metadata"]["finalizers"] == [OTHER]
    assert bench.runner.requests == []
    assert bench.reconciled("ok") == 1
    assert bench.metrics.registry.get_sample_value("dljob_runs_total", {"kind": str(ECHO)}) == 1


def test_a_failed_run_for_a_deletion_keeps_the_finalizer_and_is_repeated(make: Make) -> None:
    bench = make(Watch(ECHO, finalizer=FINALIZER))
    bench.runner.finalized = FAILED
    bench.add(metadata={"finalizers": [OURS], **DELETED})
    bench.work()
    assert bench.api.job()["metadata"]["finalizers"] == [OURS]
    assert bench.events() == ["copy: no such file"]
    bench.now += 1.0
    assert bench.take() == ["1"]


@pytest.mark.parametrize("status", [409, 0])
def test_a_finalizer_that_cannot_be_removed_makes_the_reconcile_fail(make: Make, status: int) -> None:
    bench = make(Watch(ECHO, finalizer=FINALIZER))
    bench.add(metadata={"finalizers": [OURS], **DELETED})
    bench.api.fail("PATCH", status)
    bench.work()
    (message,) = bench.events()
    assert message.startswith("cannot remove the finalizer: ")
    assert bench.reconciled("failed") == 1


@pytest.mark.parametrize(
    ("finalizers", "has_resource"),
    [([OTHER], True), ([OURS], False)],
    ids=["another finalizer", "no longer served"],
)
def test_a_job_that_is_being_deleted_is_not_run(make: Make, finalizers: list[str], has_resource: bool) -> None:
    bench = make(Watch(ECHO, finalizer=FINALIZER))
    job = bench.add(metadata={"finalizers": finalizers, **DELETED})
    if not has_resource:
        bench.kind.api_resource = None
    assert bench.work() == ["1"]
    assert (bench.runner.requests, bench.runner.finalizing, bench.api.requests()) == ([], [], [])
    bench.observe("MODIFIED", {**job, "metadata": {**job["metadata"], "labels": {"a": "b"}}})
    assert bench.take() == ["1"], "the job was given back"


def test_a_job_that_is_being_deleted_is_not_reconciled_again_by_itself(make: Make) -> None:
    bench = make()
    bench.add(metadata={"finalizers": [OTHER], **DELETED})
    bench.work()
    bench.now += 1_000_000.0
    assert bench.take() == []


def test_a_finalizer_waits_until_its_kind_is_served(make: Make) -> None:
    bench = make(Watch(ECHO, finalizer=FINALIZER))
    bench.add()
    bench.kind.api_resource = None
    bench.work()
    assert (len(bench.runner.requests), bench.api.requests()) == (1, [])


# --- periods


@pytest.mark.parametrize(
    ("annotation", "entry", "default", "expected"),
    [
        (None, 0.0, 50.0, 50.0),
        (None, 30.0, 50.0, 30.0),
        ("20s", 30.0, 50.0, 20.0),
        ("soon", 30.0, 50.0, 30.0),
        ("soon", 0.0, 50.0, 50.0),
        ("soon", 0.0, 0.0, None),
        ("0s", 30.0, 50.0, None),
    ],
)
def test_a_job_is_reconciled_again_after_its_period(
    make: Make,
    caplog: pytest.LogCaptureFixture,
    annotation: str | None,
    entry: float,
    default: float,
    expected: float | None,
) -> None:
    bench = make(Watch(ECHO, reconcile_period=entry), reconcile_period=default)
    bench.add(metadata={"annotations": {RECONCILE_PERIOD_ANNOTATION: annotation}} if annotation else {})
    bench.work()
    bench.now += (expected or 1_000_000.0) - 0.5
    assert bench.take() == []
    bench.now += 1.0
    assert bench.take() == (["1"] if expected else [])
    warnings = [fields_of(record) for record in caplog.records if record.message.startswith("invalid reconcile-period")]
    assert [(one["name"], "soon" in str(one["error"])) for one in warnings] == (
        [("digits", True)] if annotation == "soon" else []
    )


# --- problems


def test_a_run_without_progress_is_a_problem_that_names_the_job(make: Make) -> None:
    bench = make(run_timeout=20.0)
    bench.fill()
    bench.add()
    bench.take()
    bench.now += 20.0 + MARGIN
    assert bench.controller.problem() == ""
    bench.now += 1.0
    name = "example.com/v1 EchoJob team/digits"
    found = bench.controller.problem()
    assert found == f"the reconcile of {name} has made no progress for 321 s"
    assert isinstance(found, FailedCheck)
    assert found.check == "a reconcile makes no progress"
    bench.observe("DELETED", bench.api.job())
    assert bench.controller.problem() == "the reconcile of 1 has made no progress for 321 s"


def test_no_timeout_ends_a_job_that_makes_progress(make: Make) -> None:
    """Each slice has the whole time of a run, and the liveness probe counts from the last one."""
    bench = make(run_timeout=20.0)
    slices, each = 100, 15.0
    problems: list[str] = []

    def answer(request: RunRequest) -> Iterator[RunResult]:
        bench.now += each
        problems.append(bench.controller.problem())
        return iter([reports({"uid": "1", "ok": True, "continues": len(problems) < slices})])

    bench.runner.answer = answer
    bench.add()
    bench.fill()
    for _ in range(slices):
        assert bench.work() == ["1"]
    assert bench.take() == [], "it is finished"
    assert slices * each > 20.0 + MARGIN
    assert [request.timeout for request in bench.runner.requests] == [20.0] * slices
    assert problems == [""] * slices
    assert bench.reconciled("ok") == slices


def test_a_job_that_no_worker_takes_is_a_problem(make: Make) -> None:
    bench = make(run_timeout=20.0)
    bench.add(metadata={"namespace": "team"})
    bench.now += 21.0 + MARGIN
    assert bench.controller.problem() == "", "the workers wait for the caches"
    bench.fill()
    name = "example.com/v1 EchoJob team/digits"
    assert bench.controller.problem() == f"{name} has waited for 321 s, and no worker takes any job"


def test_the_liveness_probe_does_not_wait_for_the_caches(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make()
    waits: list[float] = []

    def wait(timeout: float = math.inf) -> bool:
        waits.append(timeout)
        return False

    monkeypatch.setattr(bench.informers, "wait_filled", wait)
    assert bench.controller.problem() == ""
    assert [timeout <= 0 for timeout in waits] == [True]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_informer_that_has_ended_is_a_problem(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make()
    monkeypatch.setattr(bench.informers, "problem", lambda: "the watch of pods has ended")
    assert bench.controller.problem() == "the watch of pods has ended"
    without_threads(bench.informers)

    def ends_the_thread(timeout: float = math.inf) -> bool:
        raise SystemExit

    monkeypatch.setattr(bench.informers, "wait_filled", ends_the_thread)
    bench.controller.start()
    until(lambda: bench.controller.problem() == "the thread worker 0 has ended")
    bench.controller.stop(0)


def test_the_metrics_show_the_jobs_and_the_queue(make: Make) -> None:
    bench = make()
    bench.add("first", "1", status={"state": "Running"})
    bench.add("second", "2")
    value = bench.metrics.registry.get_sample_value
    assert value("dljob_queue_jobs") == 1, "a job that was reconciled before waits for further changes"
    assert value("dljob_jobs", {"namespace": "team", "kind": str(ECHO), "state": "Running"}) == 1
    assert value("dljob_jobs", {"namespace": "team", "kind": str(ECHO), "state": ""}) == 1


# --- threads


class Stream:
    """A watch without events."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._stopped.wait(30)
        return iter(())

    def stop(self) -> None:
        self._stopped.set()


class ListingApi(FakeKubeApi):
    """Serves lists and watches as well; `served` are the kinds of example.com."""

    def __init__(self, *served: str, fails: bool = False) -> None:
        super().__init__()
        self._served, self._fails = served, fails

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        if self._fails:
            raise ApiConnectionError("connection refused")
        if path == "/apis/example.com/v1":
            return {"resources": [{"kind": kind, "name": "echojobs", "namespaced": True} for kind in self._served]}
        if path == "/api/v1/nodes":
            return {"metadata": {"resourceVersion": "1"}, "items": []}
        return super().get(path, query)

    @contextlib.contextmanager
    def watch(self, *_: Any, **__: Any) -> Iterator[Any]:
        yield Stream()


@contextlib.contextmanager
def started(api: FakeKubeApi, runner: Runner) -> Iterator[Controller]:
    before = set(threading.enumerate())
    made = Controller([Watch(ECHO, manage_status=False)], api, runner, ControllerSettings(("team",), max_concurrent=2))
    made.start()
    try:
        names = sorted(thread.name for thread in set(threading.enumerate()) - before)
        assert [name for name in names if name.startswith("worker")] == ["worker 0", "worker 1"]
        assert "orphans" in names
        yield made
    finally:
        made.stop(5.0)
    left = {thread for thread in set(threading.enumerate()) - before if thread.name != "orphans"}
    assert not left
    until(
        lambda: set(threading.enumerate()) <= before, "the thread of orphans, which may wait for the API server, ends"
    )
    assert runner.closed


def test_jobs_are_run_from_the_start_to_the_stop() -> None:
    api, runner = ListingApi("EchoJob"), Runner()
    api.add_job()
    with started(api, runner) as made:
        assert made.wait_ready() == ([ECHO], [])
        assert runner.requested.wait(10)
        assert (made.not_ready(), made.problem()) == ("", "")
    assert made.problem() == ""
    assert len(runner.requests) == 1


def test_a_kind_that_is_not_served_is_named() -> None:
    with started(ListingApi(), Runner()) as made:
        assert made.wait_ready() == ([], [ECHO])


def test_without_an_api_server_the_cache_is_not_ready_and_a_stop_does_not_wait_for_it() -> None:
    with started(ListingApi(fails=True), Runner()) as made:
        assert made.not_ready()


def test_the_settings_are_optional() -> None:
    made = Controller([Watch(ECHO, vars=BATCHABLE)], FakeKubeApi(), Runner())
    for number in range(26):
        made.queue.add(str(number), Flow(str(ECHO), "team"), urgent=True)
    for key in ("a", "b"):
        made.queue.add(key, Flow("another target", "other"), urgent=True)
    assert sorted(len(made.take(0) or []) for _ in range(4)) == [1, 1, 1, 25]
