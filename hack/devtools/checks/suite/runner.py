"""Runs the lanes: each is a thread that runs its steps in order."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from devtools.checks.suite import failures, plan
from devtools.checks.suite.account import Ended
from devtools.checks.suite.plan import Lanes, Step
from devtools.checks.suite.programs import Programs
from devtools.checks.suite.session import VARIABLE
from devtools.checks.suite.shared import Shared
from devtools.testbed.base.settings import Settings
from devtools.testbed.base.termination import ending_signals, leave_terminal
from dljob_operator.signals import SignalThread

NO_TESTS = 5
"""pytest's exit status if the markers deselect all tests."""
LINT = ("make", "lint")
SHOWN = 150
"""Number of lines of a failed step's log that are printed."""

INTERRUPTED, OVER = "interrupted", "not run, the limit is over"
"""Why a run stops before its end."""


class Interrupted(Exception):
    """A signal interrupted the run."""


class Run:
    """One run of the suite. ``folder`` gets each step's log and JUnit file, and the record of shared resources.

    After ``limit`` seconds the run stops what still runs, as after a signal, and those steps fail: a test that hangs
    because the cluster is broken must not keep the report of the others from being printed.
    """

    def __init__(
        self, lanes: Lanes, settings: Settings, folder: Path, say: Callable[[str], None], limit: float | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for old in (*folder.glob("*.log"), *folder.glob("*.xml")):
            old.unlink()
        record = folder / "session.json"
        self.ended: list[Ended] = []
        self._running: set[str] = set()
        self._lanes = lanes
        self._folder = folder
        self._say = say
        self._began = time.monotonic()
        self._programs = Programs(folder, {VARIABLE: str(record), "PYTHONUNBUFFERED": "1"})
        self._shared = Shared(settings, self._programs, folder, record)
        self._stopping = ""
        self._limit = limit
        self._over = {step.name: threading.Event() for step in lanes.steps}

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def results(self) -> list[Path]:
        """The paths of the JUnit files, of which some may not exist."""
        return [self._junit(step.name) for step in self._lanes.steps if step.kind == plan.PYTEST]

    def run(self) -> None:
        """Run all lanes to their end, and stop everything that was started, also after a failure.

        Raises Interrupted after SIGINT or SIGTERM.
        """
        lanes = [threading.Thread(target=self._lane, args=(steps,)) for steps in self._lanes.all]
        limit = threading.Timer(self._limit, self._run_out) if self._limit else None
        try:
            with SignalThread(ending_signals()) as signals:
                signals.start(self._interrupt)
                if limit:
                    limit.start()
                for lane in lanes:
                    lane.start()
                for lane in lanes:
                    lane.join()
        finally:
            if limit:
                limit.cancel()
            self._programs.resume()
            self._shared.end()
        if self._stopping == INTERRUPTED:
            raise Interrupted

    def _interrupt(self, number: int) -> None:
        leave_terminal(number)
        self._stop(INTERRUPTED)

    def _run_out(self) -> None:
        running = ", ".join(sorted(self._running))
        self._say(f"{self.seconds:6.0f} s  the limit of {self._limit:.0f} s is over; stopping {running}")
        self._stop(OVER)

    def _stop(self, why: str) -> None:
        self._stopping = self._stopping if self._stopping == INTERRUPTED else why
        self._programs.stop()
        for event in self._over.values():
            event.set()

    def _lane(self, steps: Sequence[Step]) -> None:
        broken = ""
        for step in steps:
            for name in step.after:
                self._over[name].wait()
            broken = broken or self._obstacle(step)
            if broken:
                self._end(step, 0.0, 0.0, status=1, why=broken)
                continue
            status = self._take(step)
            if status and step.kind == plan.SETUP:
                broken = f"not run, {step.name} failed"

    def _obstacle(self, step: Step) -> str:
        if self._stopping:
            return self._stopping
        setups = {one.name for one in self._lanes.cluster if one.kind == plan.SETUP}
        failed = [one.name for one in self.ended if one.status and one.name in setups and one.name in step.after]
        return f"not run, {failed[0]} failed" if failed else ""

    def _take(self, step: Step) -> int:
        started = time.monotonic()
        self._say(f"{self.seconds:6.0f} s  {step.name} begins")
        self._running.add(step.name)
        status, used = self._do(step)
        self._running.discard(step.name)
        self._end(step, time.monotonic() - started, used, status)
        return status

    def _do(self, step: Step) -> tuple[int, float]:
        if step.kind == plan.SETUP:
            return self._shared.setups[step.name](), 0.0
        if step.kind == plan.LINT:
            return self._programs.run(step.name, LINT, nice=step.nice)
        junit = ("-o", "junit_family=xunit1", f"--junitxml={self._junit(step.name)}")
        plugins = ("-p", "no:cacheprovider", "-p", failures.NAME)
        command = [sys.executable, "-m", "pytest", "-q", "--color=no", *plugins, *junit]
        environment = self._shared.apart if step.own_cluster else {}
        status, used = self._programs.run(step.name, [*command, *step.arguments], environment, nice=step.nice)
        return (0 if status == NO_TESTS else status), used

    def _end(self, step: Step, seconds: float, used: float, status: int, why: str = "") -> None:
        self.ended.append(Ended(step.name, seconds, used, status))
        self._over[step.name].set()
        outcome = why or (f"FAILED ({status})" if status else "ok")
        lines = self._output(step.name)
        closing = f", {lines[-1].strip('= ')}" if lines and step.kind == plan.PYTEST else ""
        self._say(f"{self.seconds:6.0f} s  {step.name}: {outcome} after {seconds:.0f} s{closing}")
        if status and not why:
            self._say("\n".join([f"---- {step.name}, the end of its output", *lines[-SHOWN:], "----"]))

    def _output(self, name: str) -> list[str]:
        log = self._programs.log(name)
        if not log.is_file():
            return []
        return log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()

    def _junit(self, name: str) -> Path:
        return self._folder / f"{name}.xml"
