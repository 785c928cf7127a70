"""What an engine gets of a batch while some of its jobs are still being reconciled."""

from __future__ import annotations

import threading
import types
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import batch
from ansible_collections.dljob.operator.plugins.module_utils.api.batch import PARALLEL_JOBS
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan

Part = tuple[list[str], bool]
"""The names of jobs that have an outcome, and whether they are the last."""


def done(job: Mapping[str, Any]) -> Outcome:
    return Outcome(job, Plan(), True, False, "", None)


def names_of(parts: Iterable[tuple[Sequence[Outcome], bool]]) -> Generator[Part, None, None]:
    for outcomes, is_last in parts:
        yield [one.resource["name"] for one in outcomes], is_last


class Reconciles:
    """Each job's reconcile ends when the test allows it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.allowed = {name: threading.Event() for name in "abcdef"}
        self.begun: set[str] = set()
        monkeypatch.setattr(batch, "reconcile", self._reconcile)

    def _reconcile(self, context: Any, job: Mapping[str, Any], framework: Any) -> Outcome:
        self.begun.add(job["name"])
        assert self.allowed[job["name"]].wait(30)
        if job.get("breaks"):
            fail(job["breaks"])
        return done(job)

    def parts(self, names: str, every: float | None) -> Generator[Part, None, None]:
        jobs = [{"name": name, "metadata": {"name": name}} for name in names]
        return names_of(batch.reconcile_all(None, jobs, None, every))  # type: ignore[arg-type]

    def outcome(self, error: Exception | None) -> Outcome:
        """That of a job whose reconcile raises ``error``, if there is one."""
        self.finish("a")
        job = {"name": "a", "metadata": {"name": "a"}, "breaks": error}
        (((outcome,), is_last),) = batch.reconcile_all(None, [job], None)  # type: ignore[arg-type]
        assert is_last
        return outcome

    def finish(self, names: str) -> None:
        for name in names:
            self.allowed[name].set()


def fail(error: Exception) -> None:
    raise error


@pytest.fixture
def action(monkeypatch: pytest.MonkeyPatch) -> Reconciles:
    return Reconciles(monkeypatch)


def test_finished_jobs_are_reported_before_the_rest(action: Reconciles) -> None:
    parts = action.parts("abcd", 0.01)
    action.finish("bd")
    reported: list[str] = []
    while len(reported) < 2:
        names, is_last = next(parts)
        assert not is_last
        reported += names
    assert sorted(reported) == ["b", "d"]
    action.finish("ac")
    rest = list(parts)
    assert sorted(name for names, _ in rest for name in names) == ["a", "c"]
    assert [is_last for _, is_last in rest] == [False] * (len(rest) - 1) + [True]


def test_jobs_beyond_the_concurrency_are_not_lost(action: Reconciles) -> None:
    action.finish("abcdef")
    assert len("abcdef") > PARALLEL_JOBS
    assert sorted(name for names, _ in action.parts("abcdef", 0.01) for name in names) == list("abcdef")


def test_jobs_that_have_not_begun_are_left_where_nobody_waits_for_them(
    action: Reconciles, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pool(ThreadPoolExecutor):
        """Its jobs go on once it ends."""

        def shutdown(self, *args: Any, **more: Any) -> None:
            action.finish("abcdef")
            super().shutdown(*args, **more)

    monkeypatch.setattr(batch, "ThreadPoolExecutor", Pool)
    parts = action.parts("abcdef", 0.01)
    action.finish("a")
    assert next(parts) == (["a"], False)
    parts.close()
    assert "f" not in action.begun


class SlowReconciles:
    """Each round of as many reconciles as run at once takes ten seconds, as where a webhook does not answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.begun: list[str] = []
        self._round = threading.Barrier(PARALLEL_JOBS, action=self._pass_time)
        monkeypatch.setattr(batch, "reconcile", self._reconcile)

    def _pass_time(self) -> None:
        self.now += 10.0

    def _reconcile(self, context: Any, job: Mapping[str, Any], framework: Any) -> Outcome:
        self.begun.append(job["metadata"]["name"])
        self._round.wait(30)
        return Outcome(job, Plan(), True, True, "", 5.0)

    def outcomes(self, count: int, every: float | None) -> list[Outcome]:
        jobs = [{"metadata": {"name": str(number)}} for number in range(count)]
        parts = batch.reconcile_all(None, jobs, None, every, lambda: self.now)  # type: ignore[arg-type]
        return [one for part, _ in parts for one in part]


def test_jobs_that_have_not_begun_in_time_leave_the_worker_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their engine returns them to its queue; 24 jobs, four at a time, would occupy the worker for a minute."""
    slow = SlowReconciles(monkeypatch)
    found = slow.outcomes(24, 0.01)
    begun = {one.resource["metadata"]["name"] for one in found if not one.is_postponed}
    assert begun == set(slow.begun)
    assert len(begun) == 2 * PARALLEL_JOBS, "those that begin within the limit are reconciled"
    postponed = [one for one in found if one.is_postponed]
    assert len(postponed) == 24 - len(begun)
    assert {(one.ok, one.changed, one.requeue_after) for one in postponed} == {(True, False, None)}
    assert all(one.as_result()["postponed"] is one.is_postponed for one in found)


def test_without_an_engine_every_job_has_its_reconcile(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(one.is_postponed for one in SlowReconciles(monkeypatch).outcomes(24, None))


def test_the_outcomes_have_the_order_of_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever thread begins first."""

    class LastFirst(batch._Turns):  # noqa: SLF001 - no other way decides which thread begins first
        def __init__(self, jobs: Any) -> None:
            super().__init__(jobs)
            self._waiting.reverse()

    monkeypatch.setattr(batch, "_Turns", LastFirst)
    monkeypatch.setattr(batch, "reconcile", lambda context, job, framework: done(job))
    jobs = [{"name": name, "metadata": {}} for name in "abc"]
    assert list(names_of(batch.reconcile_all(None, jobs, None))) == [(["a", "b", "c"], True)]  # type: ignore[arg-type]


def test_while_the_jobs_of_one_namespace_wait_those_of_another_have_a_thread(action: Reconciles) -> None:
    """Jobs a to e are of the namespace whose webhook does not answer."""
    jobs = [{"name": name, "metadata": {"name": name, "namespace": name == "f"}} for name in "abcdef"]
    parts = names_of(batch.reconcile_all(None, jobs, None, 0.01))  # type: ignore[arg-type]
    action.finish("f")
    assert next(parts) == (["f"], False)
    action.finish("abcde")
    assert sorted(name for names, _ in parts for name in names) == list("abcde")


@pytest.mark.parametrize("names", ["a", "abcdef"])
def test_without_an_interval_all_are_reported_at_once(action: Reconciles, names: str) -> None:
    action.finish(names)
    assert list(action.parts(names, None)) == [(list(names), True)]


def test_an_unexpected_error_fails_its_job_alone(action: Reconciles) -> None:
    action.finish("ab")
    jobs = [{"name": "a", "metadata": {}, "breaks": RuntimeError("a bug in the plugin")}, {"name": "b", "metadata": {}}]
    ((outcomes, is_last),) = batch.reconcile_all(None, jobs, None)  # type: ignore[arg-type]
    failed, other = outcomes
    assert (failed.ok, is_last, other.resource["name"], other.ok) == (False, True, "b", True)
    assert failed.message.startswith("internal error: RuntimeError: a bug in the plugin (")
    assert f"test_batch.py:{fail.__code__.co_firstlineno + 1})" in failed.message, "it names the line"
    assert (failed.changed, failed.requeue_after) == (False, None)


def test_an_api_server_that_does_not_answer_fails_its_job_alone(action: Reconciles) -> None:
    failed = action.outcome(ApiError(503, "", "no answer"))
    assert (failed.ok, failed.changed, failed.message) == (False, False, "503: no answer")


@pytest.mark.parametrize("error", [None, ApiError(500, "InternalError", "no answer"), RuntimeError("a bug")])
def test_an_outcome_says_how_long_its_reconcile_took(
    action: Reconciles, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    """Also a failed one: an admission webhook for all kinds delays the write of the status, too, until it fails."""
    times = iter([100.0, 110.0])
    monkeypatch.setattr(batch, "time", types.SimpleNamespace(monotonic=lambda: next(times)))
    outcome = action.outcome(error)
    assert (outcome.ok, outcome.seconds) == (error is None, 10.0)
