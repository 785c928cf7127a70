from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dljob_operator.engine.outcome import JobOutcome, outcomes
from dljob_operator.runner import RunEnding, RunResult, TaskFailure


def _result(*reports: dict[str, Any], failed: str = "", ending: RunEnding = RunEnding.COMPLETED) -> RunResult:
    return RunResult(ending, (TaskFailure("task", failed),) if failed else (), reports=reports)


def _one(result: RunResult) -> JobOutcome:
    return outcomes(result, ["u"])["u"]


class TestOneJob:
    def test_a_role_that_reports_nothing_is_ok_if_its_run_is(self) -> None:
        assert _one(_result()) == JobOutcome(True)
        assert _one(_result(failed="bad")) == JobOutcome(False, "task: bad")
        assert not _one(_result(ending=RunEnding.TIMED_OUT)).ok

    def test_the_earliest_requeue_after_applies(self) -> None:
        reports = [
            {"requeue_after": 30},
            {"requeue_after": None},
            {"jobs": [{"uid": "u", "requeue_after": 7}]},
        ]
        assert _one(_result(*reports)).requeue_after == 7.0
        assert _one(_result({"requeue_after": 5}, {"requeue_after": 9})).requeue_after == 5.0

    def test_a_report_can_fail_a_job_of_a_successful_run(self) -> None:
        assert _one(_result({"jobs": [{"uid": "u", "ok": False, "message": "quota"}]})) == JobOutcome(False, "quota")

    def test_a_report_does_not_override_a_failed_run(self) -> None:
        assert _one(_result({"jobs": [{"uid": "u", "ok": True}]}, failed="bad")) == JobOutcome(False, "task: bad")

    def test_a_failed_run_keeps_the_warnings_of_its_report(self) -> None:
        report = {"uid": "u", "wrote": [["p", "1"]], "warnings": ["may not list nodes"]}
        outcome = _one(_result({"jobs": [report]}, failed="bad"))
        assert (outcome.ok, outcome.wrote, outcome.warnings) == (False, {("p", "1")}, ("may not list nodes",))

    def test_what_was_written_is_kept(self) -> None:
        job = {"uid": "u", "wrote": [["p", "12"], ["q", None], ["r", 13]]}
        assert _one(_result({"jobs": [job]})).wrote == {("p", "12"), ("q", None), ("r", "13")}

    def test_several_tasks_reports_add_up(self) -> None:
        first = {"uid": "u", "ok": True, "requeue_after": 9, "wrote": [["p", "1"]]}
        second = {"uid": "u", "ok": False, "message": "no", "requeue_after": 3, "wrote": [["q", "2"]]}
        assert _one(_result({"jobs": [first]}, {"jobs": [second]})) == JobOutcome(
            False, "no", 3.0, frozenset({("p", "1"), ("q", "2")})
        )

    def test_a_job_is_postponed_if_no_task_has_reconciled_it_and_others_were_in_its_run(self) -> None:
        one, other = {"uid": "u", "postponed": True}, {"uid": "u"}

        def is_postponed(*jobs: dict[str, Any]) -> bool:
            result = _result(*({"jobs": [job]} for job in jobs))
            assert not outcomes(result, ["u"])["u"].postponed, "alone it would run again and again"
            return outcomes(result, ["u"], shared=True)["u"].postponed

        assert is_postponed(one)
        assert is_postponed(one, one)
        assert not is_postponed(one, other)
        assert not is_postponed(other, one)
        assert not is_postponed(other)

    @pytest.mark.parametrize("failures", [(), (TaskFailure("t", "m"),)])
    def test_a_job_took_as_long_as_all_tasks_say(self, failures: tuple[TaskFailure, ...]) -> None:
        """Also one that failed: that of a silent webhook may be no status at all."""
        jobs = [{"uid": "u", "ok": not failures, "seconds": seconds} for seconds in (2.0, 6.5)]
        result = replace(_result(*({"jobs": [job]} for job in jobs)), failures=failures)
        assert outcomes(result, ["u"])["u"].seconds == 8.5

    def test_a_job_whose_run_was_killed_took_as_long_as_the_run(self) -> None:
        result = replace(_result(), ending=RunEnding.TIMED_OUT, seconds=300.0)
        assert outcomes(result, ["u"])["u"].seconds == 300.0

    def test_a_role_that_reports_nothing_is_not_slow(self) -> None:
        """It may take long by its nature, and not because of its namespace."""
        assert outcomes(replace(_result(), seconds=60.0), ["u"])["u"].seconds == 0.0

    @pytest.mark.parametrize("further", [{}, {"continues": False}, {"continues": True}])
    def test_a_job_continues_if_any_task_says_so(self, further: dict[str, Any]) -> None:
        one, other = {"uid": "u", "continues": True}, {"uid": "u", **further}
        assert _one(_result({"jobs": [one]}, {"jobs": [other]})).continues
        assert _one(_result({"jobs": [other]}, {"jobs": [one]})).continues
        assert not _one(_result({"jobs": [{"uid": "u"}]}, {"jobs": [{"uid": "u"}]})).continues

    def test_the_messages_and_warnings_of_several_tasks_are_kept_once_each(self) -> None:
        first = {"uid": "u", "message": "a", "warnings": ["one", "two"]}
        second = {"uid": "u", "message": "b", "warnings": ["two", "three"]}
        outcome = _one(_result({"jobs": [first]}, {"jobs": [second]}))
        assert (outcome.message, outcome.warnings) == ("a\nb", ("one", "two", "three"))
        assert _one(_result({"jobs": [first]}, {"jobs": [first]})).message == "a"


class TestABatch:
    def test_each_job_has_its_own_outcome_even_if_the_task_failed(self) -> None:
        jobs = [
            {"uid": "a", "ok": True, "requeue_after": 4},
            {"uid": "b", "ok": False, "message": "b is bad"},
        ]
        came_to = outcomes(_result({"jobs": jobs, "requeue_after": 60}, failed="b is bad"), ["a", "b", "c"])
        assert came_to["a"] == JobOutcome(True, requeue_after=4.0)
        assert came_to["b"] == JobOutcome(False, "b is bad", 60.0)
        assert came_to["c"] == JobOutcome(False, "task: b is bad", reported=False)

    def test_requeue_after_of_one_job_does_not_affect_others(self) -> None:
        jobs = [{"uid": "a", "requeue_after": 0}, {"uid": "b", "requeue_after": None}, {"uid": "c", "requeue_after": 9}]
        came_to = outcomes(_result({"jobs": jobs, "requeue_after": 0}), ["a", "b", "c"])
        assert [came_to[uid].requeue_after for uid in "abc"] == [0.0, None, 9.0]

    def test_requeue_after_of_a_task_applies_to_all_jobs(self) -> None:
        jobs = [{"uid": "a", "requeue_after": 4}, {"uid": "b", "requeue_after": None}]
        came_to = outcomes(_result({"jobs": jobs}, {"requeue_after": 7}), ["a", "b"])
        assert [came_to[uid].requeue_after for uid in "ab"] == [4.0, 7.0]

    def test_a_partial_result_has_the_outcomes_that_it_reports(self) -> None:
        result = _result({"jobs": [{"uid": "b", "ok": False, "message": "quota"}]}, failed="quota")
        assert outcomes(replace(result, is_partial=True), ["a", "b", "c"]) == {"b": JobOutcome(False, "quota")}

    def test_the_last_job_of_a_shared_run_counts_as_shared(self) -> None:
        crashed = RunResult(RunEnding.CRASHED, (TaskFailure("", "gone"),))
        assert outcomes(crashed, ["a"], shared=True) == {"a": JobOutcome(False, "gone", reported=False)}
        assert not outcomes(_result(), ["a"], shared=True)["a"].ok

    def test_a_requeue_period_reported_with_another_job_counts(self) -> None:
        report = {"requeue_after": 3, "jobs": [{"uid": "another", "ok": True}]}
        assert outcomes(_result(report), ["a"])["a"].requeue_after == 3.0

    def test_a_job_without_a_report_has_failed(self) -> None:
        came_to = outcomes(_result({"jobs": [{"uid": "a", "ok": True}]}), ["a", "b"])
        assert came_to["a"].ok
        assert not came_to["b"].ok
        assert "reported nothing" in came_to["b"].message
        assert not came_to["b"].reported

    def test_a_crash_fails_all_jobs(self) -> None:
        result = RunResult(RunEnding.CRASHED, (TaskFailure("", "gone"),))
        assert set(outcomes(result, ["a", "b"]).values()) == {JobOutcome(False, "gone", reported=False)}
