"""runPolicy.stallPolicy: when a job stalls, when it does not, and what follows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.values.reports import LastReport, Reports
from support.builders import NOW, MXJob, mxjob, stamp
from support.fake_cluster import FakeCluster

START, SILENCE = 600, 300
FOREVER = 1e9


class Programs:
    """What the engine hears of the programs of a job."""

    def __init__(self) -> None:
        self.listens_since = NOW - timedelta(days=1)
        self.heard: dict[str, datetime] = {}

    def __call__(self, now: datetime) -> Reports:
        ages = {name: (now - at).total_seconds() for name, at in self.heard.items()}
        oldest = sorted(
            (LastReport(name, age, "45%, loss 0.5") for name, age in ages.items()), key=lambda one: -one.age
        )
        return Reports(
            (now - self.listens_since).total_seconds(), min(ages.values(), default=None), tuple(oldest), len(ages)
        )


class Job(FakeCluster):
    def __init__(self, job: MXJob) -> None:
        super().__init__(job)
        self.programs = self.reports = Programs()

    def says(self, replica: str = "worker-0") -> None:
        self.programs.heard[replica] = self.now

    def after(self, seconds: float) -> str:
        """The Stalled condition once so much time has passed: True, False, or "" for none."""
        self.advance(seconds)
        self.settle()
        return self.stalled

    @property
    def condition(self) -> Any:
        return next((one for one in self.status.get("conditions") or () if one["type"] == "Stalled"), None)

    @property
    def stalled(self) -> str:
        return self.condition["status"] if self.condition else ""

    def warnings(self) -> list[str]:
        return [one.reason for one in self.events if one.type == "Warning"]

    def restarts_all(self) -> None:
        self.kubelet_deletes()
        self.settle()
        self.run_all()
        self.settle()


def stalling(action: str = "Event", policy: str = "OnFailure", **more: Any) -> MXJob:
    limits = {"startSeconds": START, "noProgressSeconds": SILENCE, "action": action, **more.pop("stall", {})}
    return (
        mxjob()
        .v1()
        .servers(1)
        .workers(2)
        .restart(policy)
        .run_policy(stallPolicy={name: value for name, value in limits.items() if value}, **more)
    )


def running(job: MXJob) -> Job:
    made = Job(job)
    made.start()
    return made


def test_silence_after_a_report_is_a_stall_to_the_second() -> None:
    job = running(stalling())
    job.advance(100)
    job.says()
    assert job.after(SILENCE - 1) == ""
    assert job.planned().requeue_after == 1
    assert job.after(1) == "True"
    assert job.status["state"] == "Running", "clients of v1 take the last condition for the state"
    assert job.status["conditions"][-1]["type"] == "Running"
    assert (
        job.status["reason"]
        == job.condition["message"]
        == (
            "no program has reported progress for more than 300 s, as spec.runPolicy.stallPolicy.noProgressSeconds allows; "
            f"last: worker-0 at {stamp(100)} (45%, loss 0.5)"
        )
    )
    assert job.warnings() == ["MXJobStalled"]


def test_any_report_of_any_rank_is_progress() -> None:
    job = running(stalling())
    for seconds in range(0, 3000, SILENCE - 1):
        job.says(f"worker-{seconds % 2}")
        assert job.after(SILENCE - 1) == ""


def test_the_message_has_the_most_silent_ranks_and_how_many_there_are_beyond() -> None:
    job = running(stalling())
    for name in ("worker-0", "worker-1"):
        job.says(name)
        job.advance(10)
    job.advance(SILENCE)
    heard = job.programs(job.now)
    job.reports = lambda now: Reports(FOREVER, SILENCE, heard.oldest, 1000)
    job.settle()
    assert job.condition["message"].endswith(
        f"last: worker-0 at {stamp(0)} (45%, loss 0.5); worker-1 at {stamp(10)} (45%, loss 0.5); and 998 more"
    )


def test_a_job_that_never_reports_stalls_after_its_start() -> None:
    job = running(stalling())
    assert job.after(START - 1) == ""
    assert job.after(1) == "True"
    assert job.condition["message"] == (
        "no program has reported progress within 600 s since all replicas run, "
        "as spec.runPolicy.stallPolicy.startSeconds allows"
    )


def test_a_program_without_the_protocol_stalls_only_where_its_start_is_limited() -> None:
    job = running(stalling(stall={"startSeconds": None}))
    assert job.after(FOREVER / 100) == ""
    assert job.planned().requeue_after is None


def test_a_slow_step_is_allowed_where_only_the_start_is_limited() -> None:
    job = running(stalling(stall={"noProgressSeconds": None}))
    job.says()
    assert job.after(FOREVER / 100) == ""


@pytest.mark.parametrize("heard", [True, False])
def test_no_alarm_while_the_operator_was_down(heard: bool) -> None:
    """Of an operator that begins anew the status knows the last report, but reports may have been lost meanwhile."""
    job = running(stalling())
    if heard:
        job.says()
        job.resource["status"]["trainerStatus"] = {"lastUpdatedTime": stamp(0)}
    job.programs.heard.clear()
    job.advance(86_400)
    job.programs.listens_since = job.now
    job.settle()
    limit = SILENCE if heard else START
    assert job.after(limit - 1) == ""
    assert job.after(1) == "True"


def test_a_stall_that_another_operator_has_found_goes_on() -> None:
    job = running(stalling())
    job.says()
    assert job.after(SILENCE) == "True"
    job.programs.heard.clear()
    job.programs.listens_since = job.now
    assert job.after(10) == "True"
    assert job.warnings() == ["MXJobStalled"], "said once"
    job.says()
    assert job.after(1) == "False"


def test_a_report_ends_a_stall() -> None:
    job = running(stalling())
    job.says()
    assert job.after(SILENCE) == "True"
    job.advance(5)
    job.says()
    assert job.after(0) == "False"
    assert (job.condition["reason"], job.status["reason"]) == ("MXJobNotStalled", "")
    assert job.after(SILENCE) == "True", "it may stall again"


def test_a_queued_or_starting_job_does_not_stall() -> None:
    job = Job(stalling())
    job.settle()
    assert job.after(FOREVER / 100) == ""
    for index in (0, 1):
        job.run("worker", index)
    assert job.after(FOREVER / 100) == ""
    job.run_all()
    job.settle()
    assert job.after(START - 1) == "", "the time begins once all run"
    assert job.after(1) == "True"


def test_a_suspended_job_does_not_stall() -> None:
    job = running(stalling())
    job.says()
    assert job.after(SILENCE) == "True"
    job.resource["spec"]["runPolicy"]["suspend"] = True
    job.resource["metadata"]["generation"] += 1
    job.settle()
    assert (job.after(FOREVER / 100), "allRunning" in job.status) == ("False", False)
    job.resource["spec"]["runPolicy"]["suspend"] = False
    job.resource["metadata"]["generation"] += 1
    job.restarts_all()
    assert job.after(START - 1) == "False"
    assert job.after(1) == "True"


@pytest.mark.parametrize(("policy", "delay"), [("OnFailure", 0), ("ExitCode", 60)])
def test_a_replica_that_starts_again_begins_the_time_anew(policy: str, delay: int) -> None:
    """In place, where the operator may see no time in which it did not run, and by a new pod."""
    job = running(stalling(policy=policy))
    job.says()
    job.advance(SILENCE - 1)
    job.exit("worker", 1, 130)
    job.settle()
    job.advance(delay)
    job.settle()
    job.restarts_all()
    assert job.after(START - 1) == ""
    assert job.after(1) == "True"


def test_a_replica_that_has_succeeded_begins_nothing_anew() -> None:
    job = running(stalling())
    job.says()
    job.advance(SILENCE - 10)
    job.exit("worker", 1, 0)
    assert job.after(9) == ""
    assert job.after(1) == "True"


@pytest.mark.parametrize("scope", ["Replica", "Job"])
def test_all_replicas_restart(scope: str) -> None:
    job = running(stalling("RestartJob", restartScope=scope))
    names = set(job.pods)
    job.says()
    job.advance(SILENCE)
    job.step()
    job.kubelet_deletes()
    job.settle()
    assert (job.stalled, job.status["phase"], "allRunning" in job.status) == ("True", "Creating", False)
    job.run_all()
    job.settle()
    assert (job.status["state"], job.stalled, set(job.pods)) == ("Running", "False", names)
    assert (job.status["attempt"], job.status["retries"]) == (1, {"job": 1})
    assert job.warnings() == ["MXJobStalled", "MXJobRestarting"]
    message = next(one.message for one in job.events if one.reason == "MXJobRestarting")
    assert "restarts all its replicas: no program has reported progress for more than 300 s" in message
    assert job.after(START - 1) == "False", "what was before says nothing"
    job.advance(1)
    job.step()
    job.restarts_all()
    assert job.status["retries"] == {"job": 2}


def test_a_restart_whose_status_is_lost_counts_once() -> None:
    job = running(stalling("RestartJob"))
    job.says()
    job.advance(SILENCE)
    job.step(status_gets_lost=True)
    job.step()
    job.restarts_all()
    assert (job.status["attempt"], job.status["retries"]) == (1, {"job": 1})


def test_a_program_that_ends_by_itself_is_restarted_as_ever() -> None:
    job = running(stalling("RestartJob", "ExitCode"))
    job.says()
    job.advance(SILENCE)
    job.exit("worker", 1, 130)
    job.settle()
    assert (job.stalled, job.status["retries"]) == ("", {"worker-1": 1})


@pytest.mark.parametrize("scope", ["Replica", "Job"])
def test_a_restart_counts_for_backoff_limit(scope: str) -> None:
    job = running(stalling("RestartJob", backoffLimit=1, restartScope=scope))
    job.says()
    job.advance(SILENCE)
    job.step()
    job.restarts_all()
    job.says()
    job.advance(SILENCE)
    job.settle()
    assert (job.status["state"], job.status["failure"]["reason"]) == ("Failed", "BackoffLimitExceeded")
    assert job.status["reason"] == (
        "BackoffLimitExceeded: no program has reported progress for more than 300 s, as "
        f"spec.runPolicy.stallPolicy.noProgressSeconds allows; last: worker-0 at {stamp(300)} (45%, loss 0.5), and "
        "spec.runPolicy.backoffLimit allows 1 restarts, of which none is left"
    )
    assert (job.status["retries"], job.stalled) == ({"job": 1}, "True")


@pytest.mark.parametrize(("seconds", "state"), [(SILENCE, "Running"), (SILENCE + 1, "Failed")])
def test_a_restart_counts_for_restarts_within(seconds: int, state: str) -> None:
    job = running(stalling("RestartJob", restartsWithin={"count": 1, "seconds": seconds}))
    for _ in range(2):
        job.says()
        job.advance(SILENCE)
        job.step()
        job.restarts_all()
    assert job.status["state"] == state
    if state == "Failed":
        assert job.status["failure"]["reason"] == "RestartsWithinExceeded"
        assert "no program has reported progress" in job.status["reason"]


def test_a_stall_fails_a_job() -> None:
    job = running(stalling("FailJob"))
    job.says()
    job.advance(SILENCE)
    job.settle()
    assert (job.status["state"], job.status["failure"]["reason"], job.stalled) == ("Failed", "Stalled", "True")
    assert job.status["reason"].startswith("Stalled: no program has reported progress for more than 300 s")


def test_success_ends_a_stall() -> None:
    job = running(stalling())
    job.says()
    assert job.after(SILENCE) == "True"
    job.exit("scheduler", 0, 0)
    job.settle()
    assert (job.status["state"], job.stalled) == ("Succeeded", "False")


@pytest.mark.parametrize("stall", [None, {"noProgressSeconds": 3600}])
def test_an_edit_of_the_policy_counts_at_once(stall: Any) -> None:
    job = running(stalling(stall={"startSeconds": None}))
    job.says()
    assert job.after(SILENCE) == "True"
    job.resource["spec"]["runPolicy"]["stallPolicy"] = stall
    job.resource["metadata"]["generation"] += 1
    assert job.after(0) == ("False" if stall is None else "True"), "with a policy only a report ends it"
    if stall is None:
        assert "allRunning" not in job.status


def test_a_clock_that_is_set_back_or_a_status_with_nonsense_makes_no_alarm() -> None:
    job = running(stalling())
    job.says()
    job.resource["status"]["allRunning"] = {"since": "x", "restarts": "y", "newest": 3}
    assert job.after(SILENCE - 1) == ""
    job.resource["status"]["allRunning"] = ["z"]
    job.resource["status"]["trainerStatus"] = {"lastUpdatedTime": stamp(10**6)}
    job.programs.heard.clear()
    job.now -= timedelta(days=1)
    assert job.after(0) == ""


@pytest.mark.parametrize("has_policy", [True, False])
def test_without_an_endpoint_the_job_says_that_its_policy_has_no_effect(has_policy: bool) -> None:
    job = Job(stalling() if has_policy else mxjob().v1().workers(1))
    job.reports = lambda now: None
    job.start()
    assert job.after(FOREVER / 100) == ""
    assert job.warnings() == ["StallPolicyIgnored"] * has_policy
