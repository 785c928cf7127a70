"""A run: sends the cases in bounded batches, waits for the operator's answer to each, and deletes them."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from devtools.lab.fuzz.beside import Beside, Summary, delays
from devtools.lab.fuzz.cases import POD, STATUS, VALID, Case, Step, with_uid
from devtools.lab.fuzz.judge import Judgement, Outcome, fields_of, judge, names_a_field
from devtools.testbed.client import JSON, MERGE
from devtools.testbed.ground import Ground, clear
from devtools.testbed.jobs import stored
from devtools.testbed.log import Log
from devtools.testbed.operator import QUEUE, ProbedOperator
from devtools.testbed.usage import use_of

_WIDTH = 4
_PAUSE = 0.25
_QUIET = 1.0
_EVENTS = "/api/v1/namespaces/{}/events"
_NAME = re.compile(rb'"metadata":\{.*?"name":"([^"]*)"', re.DOTALL)
_UID = re.compile(rb'"uid":"([0-9a-f-]{36})","resourceVersion"|"uid":"([0-9a-f-]{36})"\}')
_SHOWN = 2000


@dataclass(frozen=True)
class Limits:
    """``batch`` objects exist at a time. The others are seconds. ``answer``: until an accepted job has a status or a
    refusal; ``delay``: by how much the others may delay a healthy job; ``gone``: until a batch is deleted."""

    answer: float = 30.0
    delay: float = 1.0
    gone: float = 180.0
    batch: int = 50


@dataclass(frozen=True)
class Violation:
    """Something that must never occur. ``cases`` are the ones that may have caused it."""

    what: str
    detail: str
    cases: tuple[Case, ...] = ()


@dataclass
class Accepted:
    """A job that the API server took."""

    case: Case
    path: str
    uid: str
    judgement: Judgement | None = None


class Memory(NamedTuple):
    """The operator's memory in bytes after a number of cases: the PSS of all processes, and the RSS of the first."""

    cases: int
    pss: int
    first: int


@dataclass
class Result:
    """Counts by kind (``JobKind.title``), and the violations."""

    facts: Mapping[str, str] = field(default_factory=dict)
    """Of the machine and the commit."""
    sent: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    server_errors: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    steps: Counter[str] = field(default_factory=Counter)
    mutations: Counter[str] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    slowest_answer: float = 0.0
    undisturbed: Summary | None = None
    disturbed: Summary | None = None
    memory: list[Memory] = field(default_factory=list)
    """Before the first case and after each batch."""
    seconds: float = 0.0
    complete: bool = False


class Run:
    """``cases`` run in ``namespace`` of ``ground``, ``beside`` them the healthy jobs."""

    def __init__(
        self, ground: Ground, operator: ProbedOperator, namespace: str, limits: Limits, say: Callable[[str], None]
    ) -> None:
        self._ground = ground
        self._client = ground.client
        self._operator = operator
        self._namespace = namespace
        self._limits = limits
        self._say = say
        self._log = Log(operator.log)
        self._stored = {(kind.group, kind.kind): kind for kind in stored(ground.kinds)}
        self.result = Result()

    def run(self, cases: Sequence[Case], beside: Beside) -> None:
        """Send all ``cases``. A batch that cannot be deleted ends the run."""
        undisturbed = self.result.undisturbed
        assert undisturbed is not None
        for start in range(0, len(cases), self._limits.batch):
            batch = cases[start : start + self._limits.batch]
            measured = len(beside.times)
            self._batch(batch)
            for times in beside.times[measured:]:
                late = delays(times, undisturbed)
                if max(late.first_pod, late.running) > self._limits.delay:
                    self.violation("a healthy job was delayed", f"{times} after {undisturbed.median}", batch)
            done = start + len(batch)
            accepted = self.result.accepted.total()
            self.remember_memory(done)
            self._say(f"{done} sent, {accepted} accepted, {len(self.result.violations)} violations")

    def remember_memory(self, cases: int) -> None:
        use = use_of(self._operator.pid)
        self.result.memory.append(Memory(cases, use.pss, use.processes[0].rss if use.processes else 0))

    # --- a batch

    def _batch(self, batch: Sequence[Case]) -> None:
        with ThreadPoolExecutor(_WIDTH) as pool:
            accepted = [one for one in pool.map(self._create, batch) if one is not None]
            self._await(accepted)
            list(pool.map(self._steps, accepted))
        self._settle()
        self._check(batch)
        for one in accepted:
            assert one.judgement is not None
            counted = self.result.outcomes.setdefault(one.case.kind.title, Counter())
            counted[one.judgement.outcome.value] += 1
        try:
            clear(self._ground, self._namespace, self._limits.gone)
        except TimeoutError as error:
            self.violation("objects that cannot be deleted", str(error), batch)
            raise
        self._check(batch)

    def _check(self, batch: Sequence[Case]) -> None:
        if problem := self._operator.problem():
            self.violation("the operator is not healthy", problem, batch)
        for what, line in self._log.unexpected():
            named = [case for case in batch if f"name={_name_of(case)} " in f"{line} "]
            self.violation(f"the log has {what}", line, named or batch)

    def _create(self, case: Case) -> Accepted | None:
        title = case.kind.title
        self.result.sent[title] += 1
        self.result.mutations.update(case.mutations)
        path = case.kind.collection(self._namespace)
        try:
            status, data = self._client.raw("POST", path, case.body(), JSON)
        except (OSError, http.client.HTTPException):  # it closes the connection of a request that is too large
            self.result.refused[title] += 1
            return None
        if status >= 500:
            self.result.server_errors[title] += 1
            return None
        if status >= 400:
            self.result.refused[title] += 1
            if case.origin == VALID:
                detail = data[:_SHOWN].decode(errors="replace")
                self.violation("a valid job that the API server refuses", detail, [case])
            return None
        self.result.accepted[title] += 1
        name, uid = identity(data)
        # read in the version that is stored: a list of it has the object too
        where = self._stored[case.kind.group, case.kind.kind].collection(self._namespace)
        return Accepted(case, f"{where}/{name}", uid)

    def _await(self, accepted: Sequence[Accepted]) -> None:
        """Judge each job as soon as the operator has answered."""
        began = time.monotonic()
        waiting = list(accepted)
        while waiting:
            late = time.monotonic() - began > self._limits.answer
            for one in list(waiting):
                one.judgement = self._judge(one, with_events=late)
                if one.judgement.outcome is not Outcome.PENDING or late:
                    waiting.remove(one)
                    self.result.slowest_answer = max(self.result.slowest_answer, time.monotonic() - began)
                    self._judged(one)
            if waiting:
                time.sleep(_PAUSE)

    def _judged(self, one: Accepted) -> None:
        assert one.judgement is not None
        if one.judgement.outcome is Outcome.PENDING:
            limit = f"{self._limits.answer:.0f} s"
            self.violation("no answer", f"{one.path} has neither a status nor an Event after {limit}", [one.case])
        elif one.judgement.outcome is Outcome.REFUSED:
            fields = fields_of(one.case.manifest) | fields_of(one.case.kind.schema)
            if not names_a_field(one.judgement.text, fields):
                self.violation("a refusal that names no field", one.judgement.text, [one.case])

    def _judge(self, one: Accepted, with_events: bool) -> Judgement:
        status, data = self._client.raw("GET", one.path)
        if status == 404:
            return judge(None)
        try:
            job = json.loads(data)
        except RecursionError:
            return Judgement(Outcome.IGNORED)
        return judge(job, self._warnings(one.uid) if with_events else ())

    def _warnings(self, uid: str) -> list[str]:
        path = f"{_EVENTS.format(self._namespace)}?fieldSelector=involvedObject.uid%3D{uid},type%3DWarning"
        return [str(event.get("message")) for event in self._client.request("GET", path)["items"]]

    def _steps(self, one: Accepted) -> None:
        for step in one.case.steps:
            try:
                status, _ = self._step(one, step)
            except (OSError, http.client.HTTPException):
                status = 0
            accepted = "accepted" if 200 <= status < 300 else "refused"
            self.result.steps[f"{step.kind} {accepted}"] += 1

    def _step(self, one: Accepted, step: Step) -> tuple[int, bytes]:
        body = json.dumps(with_uid(step.body, one.uid)).encode()
        if step.kind == POD:
            return self._client.raw("POST", f"/api/v1/namespaces/{self._namespace}/pods", body, JSON)
        path = f"{one.path}/status" if step.kind == STATUS else one.path
        return self._client.raw("PATCH", path, body, MERGE)

    def _settle(self) -> None:
        """Wait until nothing is queued for a second, or for the limit: a job may request a reconcile each second."""
        deadline = time.monotonic() + self._limits.answer
        quiet_since = time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - quiet_since < _QUIET:
            if self._operator.gauge(QUEUE):
                quiet_since = time.monotonic()
            time.sleep(_PAUSE)

    def expect_no_jobs(self, gauge: str) -> None:
        """The operator must have forgotten all jobs."""
        deadline = time.monotonic() + self._limits.answer
        while (jobs := self._operator.gauge(gauge)) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        if jobs:
            self.violation("jobs that the operator still has", f"{jobs:.0f} in its cache", ())

    def violation(self, what: str, detail: str, cases: Sequence[Case]) -> None:
        self.result.violations.append(Violation(what, detail, tuple(cases)))
        self._say(f"violation: {what}: {detail[:400]}")


def identity(data: bytes) -> tuple[str, str]:
    """(name, uid) of the object in a response, also of one that is nested too deeply for Python's decoder."""
    try:
        metadata = json.loads(data)["metadata"]
        return metadata["name"], metadata["uid"]
    except RecursionError:
        name, uid = _NAME.search(data), next(_uids(data), "")
        return name[1].decode() if name else "", uid


def _uids(data: bytes) -> Iterator[str]:
    for match in _UID.finditer(data):
        yield (match[1] or match[2]).decode()


def _name_of(case: Case) -> str:
    metadata = case.manifest.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, dict) else ""
