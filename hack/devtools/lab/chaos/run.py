"""One run: rounds of faults on a stream of jobs, each followed by a time without faults and by the checks."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from devtools.lab.chaos import checker, faults, settling, workload
from devtools.lab.chaos.disturb import Disturber
from devtools.lab.chaos.faults import CONTROL_PLANE, EVENT, JOB, NODE, PROCESS, REQUEST, Fault, Timing
from devtools.lab.chaos.history import Violation
from devtools.lab.chaos.injector import Injector
from devtools.lab.chaos.report import Result
from devtools.lab.chaos.shapes import SHAPES, Shape
from devtools.lab.chaos.world import started
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import Settings
from devtools.testbed.client import Refused
from devtools.testbed.cluster import lifecycle

_POLL = 0.3
_MATCH = 20.0
"""Seconds after the last fault in which those in the proxy may still find a request."""
_OUTAGE = 3.0
"""Seconds after which an action has waited for the API server."""
_PROGRAMS = {"API server restarted": "kube-apiserver", "etcd restarted": "etcd"}
_KILL = 'for p in /proc/[0-9]*; do [ "$(cat "$p/comm" 2>/dev/null)" = "$1" ] && kill -9 "${p#/proc/}"; done; true'
"""Run inside the cluster's node, whose own process ids it sees; the kubelet starts the program again."""


@dataclass
class Agenda:
    """Actions that are due later, on the run's own clock."""

    _heap: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def add(self, at: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (at, next(self._numbers), action))

    def due(self, now: float) -> Iterator[Callable[[], None]]:
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)[2]

    def shift(self, seconds: float) -> None:
        """Postpone everything."""
        self._heap = [(at + seconds, number, action) for at, number, action in self._heap]

    @property
    def next(self) -> float | None:
        return self._heap[0][0] if self._heap else None


class Run:
    """A run with what follows from its seed. Its result grows meanwhile."""

    def __init__(
        self, settings: Settings, result: Result, folder: Path, jobs: int = 20, shapes: Sequence[Shape] = SHAPES
    ) -> None:
        """``folder`` is for logs. Each round has so many ``jobs``, of these ``shapes``."""
        self.result = result
        self._settings, self._folder, self._jobs, self._shapes = settings, folder, jobs, shapes
        self._began = time.monotonic()
        self._timing = Timing(result.faults)
        self._schedule = faults.schedule(result.seed, self._timing)
        self.result.planned = Counter(fault.kind for fault in self._schedule)
        self._agenda = Agenda()
        self._injector = Injector(self._count)
        self._writing = threading.Lock()
        self._left: list[Fault] = []
        """Those of the round before that nothing matched."""
        self._expected: dict[str, str] = {}

    def run(self, kwok: Path, namespace: str) -> None:
        """Start everything, run, and end all of it. ``kwok`` is the program."""
        with started(self._settings, kwok, self._folder, namespace, self._injector, self._now) as self._world:
            self._disturber = Disturber(self._world.client, self._world.recorder, namespace, self._later)
            try:
                self._rounds()
            finally:
                self.result.seconds = self._now()
                self.result.starts = sum(operator.starts for operator in self._world.operators.values())
                self.result.requests = len(self._world.trail.entries)

    # --- rounds

    def _rounds(self) -> None:
        for number in range(self._timing.rounds):
            if number and self._now() > self.result.minutes * 60:
                self.result.problems.append(f"no time for rounds {number} to {self._timing.rounds - 1}")
                break
            with self._world.recorder.history() as history:
                history.round = number
            self._round(number)
            self._note(f"settling; not matched: {Counter(fault.kind for fault in self._left)}")
            for rule, detail in settling.settled(self._world, self._expected, self.result.jobs):
                self._violate(Violation(rule, detail, self._now(), number))
            self._collect()
            self.result.rounds += 1

    def _round(self, number: int) -> None:
        """Create the jobs and inject the faults of a round; end all faults that have a duration."""
        found = [one for one in self._schedule if one.round == number]
        self._say(f"round {number}: {len(found)} faults")
        begin, chaos = self._now(), self._timing.chaos
        made = workload.jobs(self.result.seed, number, self._jobs, self._shapes)
        for index, job in enumerate(made):
            self._agenda.add(begin + index * chaos / len(made), partial(self._create, job))
        for fault in (*self._left, *found):
            self._agenda.add(begin + fault.at, partial(self._inject, fault))
        # on this clock the round also ends, so that an outage postpones its end
        self._agenda.add(begin + chaos, lambda: None)
        while (moment := self._agenda.next) is not None:  # resume what is suspended, bring nodes back
            self._work_until(moment)
        deadline = self._now() + _MATCH
        while self._injector.waiting and self._now() < deadline:
            self._work_until(self._now() + _POLL)
        self._left = self._injector.disarm()
        self._world.nodes.restart()  # after the last outage
        self._world.webhook.remove_all()
        for operator in self._world.operators.values():
            operator.resume()

    def _work_until(self, end: float) -> None:
        """Do what is due. While the API server restarts, an action waits for it, and everything else waits too."""
        while True:
            for action in self._agenda.due(self._now()):
                began = self._now()
                try:
                    action()
                except (Refused, TimeoutError, ClusterError, OSError) as error:
                    self._note(f"an action failed: {error}")
                if (spent := self._now() - began) > _OUTAGE:
                    self._note(f"waited {spent:.0f} s for the API server")
                    self._agenda.shift(spent)
                    end += spent
            left = end - self._now()
            if left <= 0:
                return
            moment = self._agenda.next
            time.sleep(max(0.01, min(left, 0.5 if moment is None else moment - self._now())))

    def _create(self, job: workload.Job) -> None:
        self._expected[job.name] = job.outcome
        self._disturber.create(job.manifest)
        if checker.run_policy(job.manifest).get("suspend"):
            self._later(3.0, partial(self._disturber.resume, job.manifest))

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self._agenda.add(self._now() + seconds, action)

    # --- faults

    def _inject(self, fault: Fault) -> None:
        kind = faults.BY_NAME[fault.kind]
        if kind.group in (REQUEST, EVENT) or kind.only:
            self._injector.arm(fault)
            return
        disturb = {
            JOB: self._disturber.apply, NODE: self._disturb_node, CONTROL_PLANE: self._disturb_control_plane,
            PROCESS: self._disturb_process,
        }[kind.group]  # fmt: skip
        if hit := disturb(fault):
            self._count(fault, hit)

    def _disturb_control_plane(self, fault: Fault) -> str:
        if fault.kind == "webhook silent":
            return self._world.webhook.apply(fault, self._later)
        program = _PROGRAMS[fault.kind]
        _, cluster = lifecycle.existing(self._settings)
        cluster.engine.run("exec", self._settings.node, "sh", "-c", _KILL, "kill", program, timeout=60)
        return program

    def _disturb_node(self, fault: Fault) -> str:
        hit = self._world.nodes.apply(fault, self._later)
        if hit and fault.kind != "nodes stopped":
            with self._world.recorder.history() as history:
                history.lost_nodes.add(hit)
        return hit

    def _disturb_process(self, fault: Fault) -> str:
        world, leader = self._world, self._world.leader
        match fault.kind:
            case "partition":
                world.proxies[fault.operator].partition(fault.seconds)
                return fault.operator
            case "clock set":
                seconds = fault.chosen(faults.CLOCKS)
                world.operators[fault.operator].set_clock(seconds)
                return f"{fault.operator} {seconds:+.0f} s"
            case "kill":
                hit = leader.kill(fault.process)
                return f"{leader.name} {hit}" if hit else ""
        if not leader.stop():
            return ""
        self._later(fault.seconds, leader.resume)
        return leader.name

    # --- the record

    def _count(self, fault: Fault, hit: str = "") -> None:
        with self._writing:
            self.result.injected[fault.kind] += 1
        self._note(f"fault {fault.number} {fault.kind} {hit}".rstrip())

    def _collect(self) -> None:
        """Take over what the recorder has found in the round."""
        with self._world.recorder.history() as history:
            fresh, history.violations = history.violations, []
            self.result.pods = len(history.pods)
            # before they had ended, or while their round still had faults
            deleted = [job for job in history.jobs.values() if not job.exists and not job.ended]
        self.result.jobs["deleted by a fault"] = len(deleted)
        for violation in fresh:
            self._violate(violation)
        self._say(f"  {self.result.total} faults so far, {len(self.result.violations)} violations")

    def _violate(self, violation: Violation) -> None:
        self.result.violations.append(violation)
        self._say(f"  VIOLATION at {violation.at:.0f} s: {violation.rule}: {violation.detail}")

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _say(self, text: str) -> None:
        print(f"{self._now():6.0f} s {text}", flush=True)
        self._note(text)

    def _note(self, text: str) -> None:
        with self._writing, (self._folder / "timeline.log").open("a") as log:
            log.write(f"{self._now():8.2f} {time.strftime('%H:%M:%S')} {text}\n")
