"""A bridge that no longer works ends ansible-operator and itself, as long after that as a liveness probe would."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.polling import until

from dljob_operator.ansible_operator_bridge.watchdog import Watchdog, WatchdogTimes

DEPLOYMENT = Path(__file__).parents[4] / "deploy/kustomize/base/deployment.yaml"
FOREVER = 1_000.0


class Child:
    def __init__(self) -> None:
        self.terminated, self.killed = threading.Event(), threading.Event()
        self.terminate, self.kill = self.terminated.set, self.killed.set


class Checks:
    """A check that returns `answers` in turn, and the last one for ever."""

    def __init__(self, *answers: str | Exception) -> None:
        self._answers = list(answers)
        self.asked = 0

    def __call__(self) -> str:
        answer = self._answers[min(self.asked, len(self._answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_its_times_are_those_of_the_liveness_probe() -> None:
    (pod,) = (
        document["spec"]["template"]["spec"]
        for document in yaml.safe_load_all(DEPLOYMENT.read_text())
        if document["kind"] == "Deployment"
    )
    probe: dict[str, Any] = pod["containers"][0]["livenessProbe"]
    times = WatchdogTimes()
    assert (times.interval, times.failures) == (probe["periodSeconds"], probe.get("failureThreshold", 3))
    assert times.child + times.last == pod["terminationGracePeriodSeconds"]


def test_a_check_that_fails_again_and_again_ends_the_child(caplog: pytest.LogCaptureFixture) -> None:
    child, failing = Child(), Checks("the watch of pods has ended")
    with Watchdog([lambda: "", failing], WatchdogTimes(0.001, 3, FOREVER, FOREVER)) as watchdog:
        watchdog.start(child)
        assert child.terminated.wait(10)
    assert (watchdog.problem, failing.asked) == ("the watch of pods has ended", 3)
    assert not child.killed.is_set()
    (record,) = (one for one in caplog.records if one.levelname == "ERROR")
    assert record.message == "the bridge no longer works; ending ansible-operator"
    assert record.__dict__["dljob_fields"]["error"] == "the watch of pods has ended"


def test_a_check_that_fails_now_and_then_ends_nothing() -> None:
    child, failing = Child(), Checks("slow", "slow", "", "slow", "slow", "", "slow", "slow", "")
    with Watchdog([failing], WatchdogTimes(0.001, 3, FOREVER, FOREVER)) as watchdog:
        watchdog.start(child)
        until(lambda: failing.asked > 9)
    assert (watchdog.problem, child.terminated.is_set()) == ("", False)


def test_a_check_with_an_error_has_failed() -> None:
    child = Child()
    with Watchdog([Checks(RuntimeError("a bug"))], WatchdogTimes(0.001, 3, FOREVER, FOREVER)) as watchdog:
        watchdog.start(child)
        assert child.terminated.wait(10)
    assert watchdog.problem == "RuntimeError: a bug"


def test_what_does_not_end_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    child, codes = Child(), []
    exited = threading.Event()

    def exit_process(code: int) -> None:
        codes.append(code)
        exited.set()

    with Watchdog([Checks("stuck")], WatchdogTimes(0.001, 1, 0.001, 0.001), exit_process) as watchdog:
        watchdog.start(child)
        assert exited.wait(10)
    assert (child.killed.is_set(), codes) == (True, [1])
    assert "the threads of the bridge did not end; exiting without them" in caplog.text


def test_what_ends_in_time_is_not_killed() -> None:
    child, codes = Child(), []
    with Watchdog([Checks("stuck")], WatchdogTimes(0.001, 1, FOREVER, FOREVER), codes.append) as watchdog:
        watchdog.start(child)
        assert child.terminated.wait(10)
    until(lambda: not any(thread.name == "watchdog" for thread in threading.enumerate()))
    assert codes == []


def test_nothing_is_checked_after_the_end() -> None:
    child, checks = Child(), Checks("stopped")
    with Watchdog([checks], WatchdogTimes(FOREVER, 1, FOREVER, FOREVER)) as watchdog:
        watchdog.start(child)
    until(lambda: not any(thread.name == "watchdog" for thread in threading.enumerate()))
    assert (checks.asked, watchdog.problem, child.terminated.is_set()) == (0, "", False)
