"""One run: rounds of faults on a stream of jobs, each followed by a time without faults and by the checks."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devtools.lab.chaos import checker, control_plane, faults, workload
from devtools.lab.chaos.disturb import Disturber
from devtools.lab.chaos.faults import CONTROL_PLANE, EVENT, JOB, NODE, OPERATORS, REQUEST, Fault, Timing
from devtools.lab.chaos.history import History, Violation, is_final, state_of
from devtools.lab.chaos.injector import Injector
from devtools.lab.chaos.nodes import Nodes
from devtools.lab.chaos.operators import Operator
from devtools.lab.chaos.proxy import Proxy, Trail, write_kubeconfig
from devtools.lab.chaos.recorder import Recorder
from devtools.lab.chaos.report import Result
from devtools.lab.chaos.shapes import SHAPES, Shape
from devtools.lab.chaos.upstream import Client, Refused, Upstream
from devtools.lab.chaos.webhook import SilentWebhook
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import Settings

RULES = (
    "one pod a rank at a time",
    "every job ends, as its pods imply",
    "no job vanishes that nothing has deleted",
    "an outcome stays",
    "each failure counts once",
    "each pod has the labels of its job",
    "no pod and no batch Job runs for an ended job whose policy deletes it",
    "no write for a job at rest",
    "no object without its job",
    "the leader's count of jobs by kind and state equals the API server's",
    "no process outlives its operator",
)
_SETTLE = 420.0
"""Seconds in which all jobs must have ended: the kubelet may take five minutes to restart the API server."""
_REST = 12.0
"""Seconds without a write, after which jobs are at rest: a succeeded job gives its other replicas 10 s to exit."""
_REST_LIMIT = 60.0
_DELETION = 180.0
_POLL = 0.3
_MATCH = 20.0
"""Seconds after the last fault in which those in the proxy may still find a request."""
_OUTAGE = 3.0
"""Seconds after which an action has waited for the API server."""
_CACHE_LIMIT = 30.0


@dataclass(frozen=True)
class Options:
    """What to run, and on which cluster."""

    settings: Settings
    kwok: Path
    """The program."""
    folder: Path
    """For logs."""
    namespace: str
    seed: int = 1
    faults: int = 1000
    minutes: float = 40.0
    jobs: int = 20
    """Jobs in each round."""
    shapes: Sequence[Shape] = SHAPES
    """Those of the jobs."""
    say: Callable[[str], None] = print


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
    """Everything that a run starts, and its result so far. ``run`` ends all of it."""

    def __init__(self, options: Options, result: Result) -> None:
        self._options = options
        self.result = result
        self._began = time.monotonic()
        self._timing = Timing(options.faults)
        self._schedule = faults.schedule(options.seed, self._timing)
        self.result.planned = Counter(fault.kind for fault in self._schedule)
        self._upstream = Upstream(options.settings.kubeconfig)
        self._client = Client(self._upstream)
        self._agenda = Agenda()
        self._trail = Trail()
        self._injector = Injector(self._count)
        self._timeline = options.folder / "timeline.log"
        self._writing = threading.Lock()
        self._left: list[Fault] = []
        """Those of the round before that nothing matched."""
        self._expected: dict[str, str] = {}
        self._operators: dict[str, Operator] = {}
        self._proxies: dict[str, Proxy] = {}

    def run(self) -> None:
        options = self._options
        with contextlib.ExitStack() as stack:
            stack.callback(self._finish)
            self._client.request("POST", "/api/v1/namespaces", {"metadata": {"name": options.namespace}})
            stack.callback(self._delete_namespace)
            self._nodes = stack.enter_context(
                Nodes(self._client, options.kwok, options.settings.kubeconfig, options.folder)
            )
            self._webhook = stack.enter_context(SilentWebhook(self._client, options.namespace))
            self._start_operators(stack)
            self._recorder = stack.enter_context(Recorder(self._client, options.namespace, self._now))
            self._disturber = Disturber(self._client, self._recorder, options.namespace, self._later)
            for number in range(self._timing.rounds):
                if number and self._now() > options.minutes * 60:
                    self.result.problems.append(f"no time for rounds {number} to {self._timing.rounds - 1}")
                    break
                self._round(number)
                self.result.rounds += 1

    # --- what a run starts

    def _start_operators(self, stack: contextlib.ExitStack) -> None:
        options = self._options
        for name in OPERATORS:
            proxy = stack.enter_context(Proxy(name, self._upstream, self._trail, self._injector))
            kubeconfig = options.folder / f"kubeconfig-{name}"
            write_kubeconfig(kubeconfig, proxy.url)
            arguments = [
                "--namespace", options.namespace, "--leader-elect",
                "--leader-election-namespace", options.namespace, "--install-crds",
            ]  # fmt: skip
            operator = stack.enter_context(Operator(name, kubeconfig, options.folder, arguments, _free_port()))
            proxy.kill = lambda fault, operator=operator: operator.kill(fault.process)  # type: ignore[misc]
            self._proxies[name], self._operators[name] = proxy, operator
            if name == OPERATORS[0]:
                operator.wait_ready()

    def _finish(self) -> None:
        result = self.result
        result.seconds = self._now()
        result.starts = sum(operator.starts for operator in self._operators.values())
        result.requests = len(self._trail.entries)

    def _delete_namespace(self) -> None:
        with contextlib.suppress(Refused, TimeoutError):
            self._client.request("DELETE", f"/api/v1/namespaces/{self._options.namespace}")

    # --- rounds

    def _round(self, number: int) -> None:
        self._recorder.begin_round(number)
        found = faults.of_round(self._schedule, number)
        self._say(f"round {number}: {len(found)} faults")
        begin = self._now()
        made = workload.jobs(self._options.seed, number, self._options.jobs, self._options.shapes)
        for index, job in enumerate(made):
            self._agenda.add(begin + index * self._timing.chaos / len(made), lambda job=job: self._create(job))  # type: ignore[misc]
        for fault in (*self._left, *found):
            self._agenda.add(begin + fault.at, lambda fault=fault: self._inject(fault))  # type: ignore[misc]
        # on this clock the round also ends, so that an outage postpones its end
        self._agenda.add(begin + self._timing.chaos, lambda: None)
        while (moment := self._agenda.next) is not None:  # resume what is suspended, bring nodes back
            self._work_until(moment)
        deadline = self._now() + _MATCH
        while self._injector.waiting and self._now() < deadline:
            self._work_until(self._now() + _POLL)
        self._left = self._injector.disarm()
        self._calm()
        self._note(f"settling; not matched: {Counter(fault.kind for fault in self._left)}")
        self._settle(number)

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

    def _calm(self) -> None:
        """End all faults that have a duration, and the consequences for the simulated nodes."""
        self._nodes.restart()
        self._webhook.remove_all()
        for operator in self._operators.values():
            operator.resume()

    def _create(self, job: workload.Job) -> None:
        self._expected[job.name] = job.outcome
        path = job.path(self._options.namespace)
        self._disturber.create(path, job.manifest)
        spec = job.manifest["spec"]
        if isinstance(spec, dict) and (spec.get("runPolicy") or {}).get("suspend"):
            self._later(3.0, lambda: self._disturber.resume(f"{path}/{job.name}", job.manifest))

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self._agenda.add(self._now() + seconds, action)

    # --- faults

    def _inject(self, fault: Fault) -> None:
        group = faults.BY_NAME[fault.kind].group
        if group in (REQUEST, EVENT) or fault.kind.endswith(" write"):
            self._injector.arm(fault)
            return
        hit = (
            self._disturber.apply(fault) if group == JOB
            else self._disturb_node(fault) if group == NODE
            else self._disturb_control_plane(fault) if group == CONTROL_PLANE
            else self._disturb_process(fault)
        )  # fmt: skip
        if hit:
            self._count(fault, hit)

    def _disturb_control_plane(self, fault: Fault) -> str:
        if fault.kind == "webhook silent":
            return self._webhook.apply(fault, self._later)
        control_plane.kill(self._options.settings, fault.kind)
        return control_plane.PROGRAMS[fault.kind]

    def _disturb_node(self, fault: Fault) -> str:
        hit = self._nodes.apply(fault, self._later)
        if hit and fault.kind != "nodes stopped":
            self._recorder.loses(hit)
        return hit

    def _disturb_process(self, fault: Fault) -> str:
        leader = self._leader()
        if fault.kind == "partition":
            self._proxies[fault.operator].partition(fault.seconds)
            return fault.operator
        if fault.kind == "clock set":
            seconds = fault.chosen(faults.CLOCKS)
            self._operators[fault.operator].set_clock(seconds)
            return f"{fault.operator} {seconds:+.0f} s"
        if fault.kind == "kill":
            hit = self._operators[leader].kill(fault.process)
            return f"{leader} {hit}" if hit else ""
        operator = self._operators[leader]
        if not operator.stop():
            return ""
        self._later(fault.seconds, operator.resume)
        return leader

    def _leader(self) -> str:
        """The operator that has sent the last write."""
        writes = self._trail.writes_since(0, self._options.namespace)
        return writes[-1].operator if writes else OPERATORS[0]

    def _count(self, fault: Fault, hit: str = "") -> None:
        with self._writing:
            self.result.injected[fault.kind] += 1
        self._note(f"fault {fault.number} {fault.kind} {hit}".rstrip())

    # --- checks

    def _settle(self, number: int) -> None:
        deadline = self._now() + _SETTLE
        manifests = self._jobs()
        while not all(is_final(state_of(job)) for job in manifests) and self._now() < deadline:
            time.sleep(_POLL * 3)
            manifests = self._jobs()
        self._report(number, checker.lost_jobs(manifests))
        self._report(number, checker.wrong_outcomes(manifests, self._expected))
        self._check_rest(number)
        self._check_cache(number)
        manifests = self._jobs()
        self._report(number, self._recorder.read(lambda history: list(checker.left_running(manifests, history))))
        batch_jobs = self._client.items(workload.BATCH_JOBS.path(self._options.namespace))
        self._report(number, checker.left_batch_jobs(manifests, batch_jobs))
        self._report(number, self._recorder.read(lambda history: list(checker.wrong_attempts(history))))
        self._report(number, self._recorder.read(lambda history: list(checker.wrong_labels(history))))
        manifests = self._jobs()
        self._report(number, self._recorder.read(lambda history: list(checker.vanished_jobs(manifests, history))))
        self.result.jobs.update(state_of(job) or "no state" for job in manifests)
        self._delete_jobs(number)
        self._collect(number)

    def _check_rest(self, number: int) -> None:
        """Wait until nothing is written and no pod of a lost node is left, then look whether that lasts.

        Kubernetes deletes those pods by force after 40 to 60 s, and the operator may report it; this does it at once.
        """
        deadline = self._now() + _REST_LIMIT
        namespace = self._options.namespace
        while (leaving := self._leaving()) or self._trail.writes_since(time.monotonic() - _REST, namespace):
            if self._now() > deadline:
                break
            for name in leaving:
                with contextlib.suppress(Refused):  # it is gone by now
                    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
                    self._client.request("DELETE", path, {"gracePeriodSeconds": 0})
            time.sleep(_POLL)
        begin = time.monotonic()
        time.sleep(_REST)
        writes = [f"{one.method} {one.path}: {one.status}" for one in self._trail.writes_since(begin, namespace)]
        self._report(number, checker.writes_at_rest(writes))

    def _leaving(self) -> list[str]:
        return self._recorder.read(lambda history: history.leaving(self._nodes.names))

    def _check_cache(self, number: int) -> None:
        """Whether some operator's metrics agree with the API server; only the leader's have jobs."""
        deadline = self._now() + _CACHE_LIMIT
        while True:
            manifests = self._jobs()
            texts = [operator.metrics() for operator in self._operators.values()]
            with_jobs = [text for text in texts if checker.cached_jobs(text, self._options.namespace)] or texts[:1]
            wrong = [[*checker.wrong_cache(text, self._options.namespace, manifests)] for text in with_jobs]
            if not manifests or not all(wrong):
                return
            if self._now() > deadline:
                self._report(number, wrong[0])
                return
            time.sleep(1)

    def _delete_jobs(self, number: int) -> None:
        namespace = self._options.namespace
        deadline = self._now() + _DELETION
        self._recorder.deletes_all()
        for plural in workload.WATCHED:
            self._client.request("DELETE", plural.path(namespace), {"propagationPolicy": "Background"})
        while found := [
            finding
            for resource in workload.OWNED
            for finding in checker.orphans(self._client.items(resource.path(namespace)), self._jobs())
        ]:
            if self._now() > deadline:
                self._report(number, found)
                return
            time.sleep(1)

    def _collect(self, number: int) -> None:
        """Move what the recorder and the operators have found into the result."""
        known = {(v.rule, v.detail) for v in self.result.violations}
        fresh = [v for v in self._recorder.violations() if (v.rule, v.detail) not in known]
        self.result.violations += fresh
        for one in fresh:
            self._say(f"  VIOLATION at {one.at:.0f} s: {one.rule}: {one.detail}")
        for operator in self._operators.values():
            self._report(number, [("a process outlives its operator", one) for one in operator.orphans])
            operator.orphans.clear()
        self.result.pods = self._recorder.read(lambda history: len(history.pods))
        deleted = self._recorder.read(_deleted_jobs)
        self.result.jobs["deleted by a fault"] = deleted
        self._say(f"  {self.result.total} faults so far, {len(self.result.violations)} violations")

    def _report(self, number: int, findings: Iterator[checker.Finding] | Sequence[checker.Finding]) -> None:
        for rule, detail in findings:
            violation = Violation(rule, detail, self._now(), number)
            self.result.violations.append(violation)
            self._say(f"  VIOLATION at {violation.at:.0f} s: {rule}: {detail}")

    def _jobs(self) -> list[Mapping[str, Any]]:
        """All jobs, as the API server lists them now."""
        found: list[Mapping[str, Any]] = []
        for plural in workload.WATCHED:
            version = f"{plural.group}/{plural.version}"
            listed = self._client.request("GET", plural.path(self._options.namespace))
            kind = str(listed.get("kind", "")).removesuffix("List")
            found += [{"apiVersion": version, "kind": kind, **item} for item in listed.get("items") or ()]
        return found

    # --- the record

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _say(self, text: str) -> None:
        self._options.say(f"{self._now():6.0f} s {text}")
        self._note(text)

    def _note(self, text: str) -> None:
        with self._writing, self._timeline.open("a") as log:
            log.write(f"{self._now():8.2f} {time.strftime('%H:%M:%S')} {text}\n")


def _deleted_jobs(history: History) -> int:
    """Jobs that were deleted before they had ended, or while their round still had faults."""
    return sum(1 for job in history.jobs.values() if not job.exists and not job.ended)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
