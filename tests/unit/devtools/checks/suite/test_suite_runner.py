"""The lanes with real programs: pytest on files that the test writes."""

from __future__ import annotations

import json
import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from devtools.checks.suite import plan, results, runner, session
from devtools.checks.suite.plan import Lanes, Step
from devtools.checks.suite.runner import Interrupted, Run
from devtools.testbed import background
from devtools.testbed.base.settings import settings_from
from support.polling import until


class Suite:
    """A run in a separate folder, and its output."""

    def __init__(self, folder: Path, lanes: Lanes, limit: float | None = None) -> None:
        self.folder = folder
        self.said: list[str] = []
        settings = settings_from({**os.environ, "DLJOB_CLUSTER_DIR": str(folder / "cluster")})
        self.run = Run(lanes, settings, folder / "suite", self.said.append, limit)

    def status(self) -> dict[str, int]:
        return {step.name: step.status for step in self.run.ended}


def step(folder: Path, name: str, body: str, after: tuple[str, ...] = ()) -> Step:
    """A step with one test, whose body is given."""
    file = folder / f"test_{name}.py"
    file.write_text(f"import os, pathlib, signal, time\n\ndef test_it():\n    {body}\n")
    return Step(name, plan.PYTEST, (str(file),), after)


def test_a_step_waits_for_one_of_the_other_lane_and_a_failure_stops_no_other(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    late = step(tmp_path, "late", f"assert pathlib.Path({str(mark)!r}).exists()", after=("first",))
    first = step(tmp_path, "first", f"pathlib.Path({str(mark)!r}).touch(); assert False")
    suite = Suite(tmp_path, Lanes((late,), (first, step(tmp_path, "last", "pass"))))
    suite.run.run()
    assert suite.status() == {"first": 1, "last": 0, "late": 0}
    assert {case.name.rpartition("/")[2]: case.outcome for case in results.read(suite.run.results)} == {
        "test_first.py::test_it": "failed",
        "test_last.py::test_it": "passed",
        "test_late.py::test_it": "passed",
    }
    assert any("assert False" in text for text in suite.said), "the failure is shown"


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_failure_is_in_the_log_before_the_step_ends(tmp_path: Path, workers: tuple[str, ...]) -> None:
    log = tmp_path / "suite" / "one.log"
    broken = step(tmp_path, "broken", "assert not 'the reason'")
    # a worker of pytest-xdist goes on while its failure is on the way to the process that writes the log
    wanted = f"\"assert not 'the reason'\" in pathlib.Path({str(log)!r}).read_text()"
    waits = f"deadline = time.monotonic() + 60\n    while not ({wanted}): time.sleep(0.05); assert time.monotonic() < deadline"
    reads = step(tmp_path, "reads", waits)
    suite = Suite(tmp_path, Lanes((Step("one", plan.PYTEST, (*workers, *broken.arguments, *reads.arguments)),)))
    suite.run.run()
    outcomes = {case.name.rpartition("/")[2]: case.outcome for case in results.read(suite.run.results)}
    assert outcomes == {"test_broken.py::test_it": "failed", "test_reads.py::test_it": "passed"}


def test_a_step_may_have_a_higher_niceness(tmp_path: Path) -> None:
    one = step(tmp_path, "nice", f"assert os.nice(0) == {os.nice(0) + 3}")
    suite = Suite(tmp_path, Lanes((Step("nice", plan.PYTEST, one.arguments, nice=3),)))
    suite.run.run()
    assert suite.status() == {"nice": 0}


def test_a_step_with_a_cluster_of_its_own_does_not_see_the_shared_one(tmp_path: Path) -> None:
    body = f"assert (os.environ[{session.VARIABLE!r}], os.environ['DLJOB_CLUSTER_DIR'][-13:]) == ('', '/load-cluster')"
    alone = Step("alone", plan.PYTEST, step(tmp_path, "alone", body).arguments, own_cluster=True)
    suite = Suite(tmp_path, Lanes(separate=(alone,)))
    suite.run.run()
    assert suite.status() == {"alone": 0}


def test_markers_that_leave_no_test_are_no_failure(tmp_path: Path) -> None:
    one = step(tmp_path, "none", "pass")
    suite = Suite(tmp_path, Lanes((Step("none", plan.PYTEST, (*one.arguments, "-m", "serial")),)))
    suite.run.run()
    assert suite.status() == {"none": 0}


def test_after_a_set_up_that_failed_its_lane_and_who_waits_for_it_do_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = step(tmp_path, "needs", "pass", after=(plan.IMAGES,))
    suite = Suite(tmp_path, Lanes((needs,), (Step(plan.IMAGES, plan.SETUP), step(tmp_path, "next", "pass"))))
    # no cluster is up in that folder, so pushing the images fails
    monkeypatch.setenv("DLJOB_CLUSTER_DIR", str(tmp_path / "cluster"))
    suite.run.run()
    assert suite.status() == {plan.IMAGES: 1, "next": 1, "needs": 1}
    assert any("not run, images failed" in text for text in suite.said)
    assert any("no cluster is up" in text for text in suite.said)


def test_tests_read_what_is_shared_from_the_session(tmp_path: Path) -> None:
    body = "from devtools.checks.suite import session; assert session.current() == session.Session(); assert os.environ[session.VARIABLE]"
    suite = Suite(tmp_path, Lanes((step(tmp_path, "reads", body),)))
    suite.run.run()
    assert suite.status() == {"reads": 0}


def test_a_session_survives_its_file(tmp_path: Path) -> None:
    shared = session.Session(kubeconfig="/k", images=True, operator_log="/l")
    shared.write(tmp_path / "session.json")
    assert session.current({session.VARIABLE: str(tmp_path / "session.json")}) == shared
    assert session.current({}) == session.Session()


def test_a_signal_ends_what_runs_fixtures_included(tmp_path: Path) -> None:
    """The fixture stops a process that it started in a new session."""
    ended, body = tmp_path / "ended", f"os.kill({os.getpid()}, signal.SIGTERM); time.sleep(60)"
    endless = step(tmp_path, "endless", body)
    (tmp_path / "conftest.py").write_text(
        "import pathlib, pytest\n\n@pytest.fixture(autouse=True)\ndef operator():\n    yield\n"
        f"    pathlib.Path({str(ended)!r}).touch()\n"
    )
    suite = Suite(tmp_path, Lanes((endless, step(tmp_path, "never", "pass"))))
    with pytest.raises(Interrupted):
        suite.run.run()
    assert suite.status() == {"endless": 2, "never": 1}, "2: pytest was interrupted"
    assert ended.exists()
    assert not (tmp_path / "suite" / "never.xml").exists()


class Limit(threading.Thread):
    """In place of a timer: its time is over as soon as ``is_over()``, however long the steps take to begin."""

    is_over: ClassVar[Callable[[], bool]]

    def __init__(self, seconds: float, run_out: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._run_out = run_out

    def run(self) -> None:
        until(Limit.is_over)
        self._run_out()

    def cancel(self) -> None:
        self.join()


def test_after_the_limit_what_hangs_is_stopped_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other steps' results are reported, which a run that something outside kills never does."""
    began = tmp_path / "began"
    hangs = step(tmp_path, "hangs", f"pathlib.Path({str(began)!r}).touch(); time.sleep(600)")
    suite = Suite(
        tmp_path, Lanes((step(tmp_path, "quick", "pass"),), (hangs, step(tmp_path, "never", "pass"))), limit=15
    )
    monkeypatch.setattr(Limit, "is_over", lambda: began.exists() and "quick" in suite.status(), raising=False)
    limited = {**vars(threading), "Timer": Limit}  # of this module only: others stop processes by a timer
    monkeypatch.setattr(runner, "threading", types.SimpleNamespace(**limited))
    suite.run.run()
    assert began.exists()
    assert suite.status() == {"quick": 0, "hangs": 2, "never": 1}
    assert any("the limit of 15 s is over; stopping hangs" in text for text in suite.said)
    assert any("never: not run, the limit is over" in text for text in suite.said)


def test_a_run_within_its_limit_is_not_stopped(tmp_path: Path) -> None:
    suite = Suite(tmp_path, Lanes((step(tmp_path, "quick", "pass"),)), limit=600)
    suite.run.run()
    assert suite.status() == {"quick": 0}
    assert not any("limit" in text for text in suite.said)


def test_what_an_interrupted_scenario_has_started_is_ended(tmp_path: Path) -> None:
    suite = Suite(tmp_path, Lanes())
    folder = tmp_path / "cluster" / "molecule" / "default"
    assert (
        background.start(folder, [sys.executable, "-uc", "print('ready'); import time; time.sleep(60)"], "ready", 30)
        == ""
    )
    (tmp_path / "cluster" / "molecule-state").mkdir()
    pid = json.loads((folder / "process.json").read_text())["pid"]
    suite.run.run()
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().split()[2]
    assert not (folder / "process.json").exists()
    assert not (tmp_path / "cluster" / "molecule-state").exists(), "molecule would believe that the operator runs"


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
@pytest.mark.parametrize(("attempts", "outcome"), [(2, results.PASSED), (3, results.FAILED)])
def test_a_test_that_is_tried_again_has_its_attempts_counted(
    tmp_path: Path, workers: tuple[str, ...], attempts: int, outcome: str
) -> None:
    """It passes at the attempt of that number, and the second is the last one."""
    log = tmp_path / "log"
    count = f"log = pathlib.Path({str(log)!r}); log.open('a').write('x'); assert len(log.read_text()) == {attempts}"
    one = step(tmp_path, "one", count)
    suite = Suite(tmp_path, Lanes((Step("one", plan.PYTEST, (*workers, *plan.REPEATED, *one.arguments)),)))
    suite.run.run()
    (case,) = results.read(suite.run.results)
    assert (case.outcome, case.attempts, case.unsteady) == (outcome, 2, outcome == results.PASSED)
    assert suite.status() == {"one": int(outcome == results.FAILED)}
    assert "test_it (call), and is tried again" in (tmp_path / "suite" / "one.log").read_text()
