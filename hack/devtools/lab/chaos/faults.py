"""The kinds of faults, and the schedule that follows from a seed. Pure.

The seed determines which faults occur, their order, their times and their parameters. Which request or object a fault
hits depends also on the time at which the operator sends it, so two runs of a seed have the same faults on a similar,
not on an identical, history.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
REQUEST, EVENT, PROCESS, CONTROL_PLANE, NODE, JOB = "request", "watch event", "process", "control plane", "node", "job"


@dataclass(frozen=True)
class Kind:
    """One kind of fault."""

    name: str
    group: str
    """What it disturbs: a request or a watch event in the proxy, a process, the control plane, a node, or a job."""
    weight: int
    """Its share of a run."""
    about: str
    seconds: tuple[float, float] = (0.0, 0.0)
    """The bounds of its duration, where it has one."""
    gap: float = 0.0
    """Minimum seconds between two of this kind: the kubelet restarts a static pod later after each of its ends."""


KINDS: tuple[Kind, ...] = (
    Kind("conflict", REQUEST, 5, "an update gets 409 and has no effect"),
    Kind("throttled", REQUEST, 5, "a request gets 429 with Retry-After and has no effect"),
    Kind("server error", REQUEST, 5, "a request gets 500 and has no effect"),
    Kind("error after write", REQUEST, 5, "a write takes effect and gets 500"),
    Kind("timeout", REQUEST, 3, "a request has no effect, and its connection closes after a while", (1, 6)),
    Kind("lost response", REQUEST, 8, "a write takes effect, and its connection closes without a response"),
    Kind("half-open", REQUEST, 2, "a request has no effect and gets no response on an open connection", (31, 35)),
    Kind("half-open after write", REQUEST, 2, "a write takes effect and gets no response", (31, 35)),
    Kind("slow response", REQUEST, 4, "a write takes effect, and its response is late", (0.5, 5)),
    Kind("late write", REQUEST, 3, "the connection of a write closes, and the write takes effect later", (0.5, 4)),
    Kind("lost renewal", REQUEST, 2, "a write of the Lease takes effect, and its connection closes"),
    Kind("half-open renewal", REQUEST, 1, "a write of the Lease gets no response", (5, 8)),
    Kind("event dropped", EVENT, 6, "a watch ends without its next event; the client continues before it"),
    Kind("event gone", EVENT, 4, "a watch reports 410 Gone instead of its next event"),
    Kind("event cut", EVENT, 5, "a watch ends in the middle of an event"),
    Kind("event delayed", EVENT, 6, "a watch delivers its next event, and those behind it, late", (0.3, 6)),
    Kind("event duplicated", EVENT, 5, "a watch delivers an event twice"),
    Kind("watch silent", EVENT, 2, "a watch delivers nothing for a while, then its connection closes", (3, 12)),
    Kind("partition", PROCESS, 2, "all connections of an operator close, and new ones too, for a while", (1, 8)),
    Kind("kill before write", PROCESS, 4, "SIGKILL of an operator's process when it sends a write, which is lost"),
    Kind("kill during write", PROCESS, 3, "SIGKILL when it sends a write, which takes effect later", (0.1, 3)),
    Kind("kill after write", PROCESS, 4, "SIGKILL when a write has taken effect, before its response"),
    Kind("kill", PROCESS, 4, "SIGKILL of an operator's process at any time"),
    Kind("leader stopped", PROCESS, 2, "SIGSTOP of the leader's processes for longer than the Lease", (8, 13)),
    Kind("clock set", PROCESS, 3, "the wall clock of an operator's processes jumps, by up to ten minutes either way"),
    Kind("API server restarted", CONTROL_PLANE, 1, "SIGKILL of kube-apiserver in the node", gap=280),
    Kind("etcd restarted", CONTROL_PLANE, 1, "SIGKILL of etcd in the node", gap=280),
    Kind("webhook silent", CONTROL_PLANE, 2, "writes wait for an admission webhook that does not answer", (3, 12)),
    Kind("node lost", NODE, 2, "the Node is deleted, and another one joins later", (5, 25)),
    Kind("node returned", NODE, 1, "the Node is deleted, and one of the same name joins later", (5, 75)),
    Kind("nodes stopped", NODE, 2, "no pod of any simulated node changes for a while", (3, 10)),
    Kind("pod deleted", JOB, 5, "a pod is deleted"),
    Kind("pod killed", JOB, 4, "a pod is deleted with a grace period of 0"),
    Kind("pod evicted", JOB, 3, "a pod is evicted: condition DisruptionTarget, then its deletion"),
    Kind("job deleted", JOB, 3, "a job is deleted"),
    Kind("job re-created", JOB, 3, "a job is deleted, and another one of its name is created at once"),
    Kind("job edited", JOB, 4, "the number of a job's replicas changes, which restarts it"),
    Kind("job suspended", JOB, 4, "a job is suspended, and resumed later", (1, 10)),
)
BY_NAME = {kind.name: kind for kind in KINDS}
PROCESSES = ("main", "fork server", "worker")
"""The processes of an operator that the faults of the kinds ``kill...`` hit."""
OPERATORS = ("a", "b")
CLOCKS = (-600.0, -30.0, -3.0, 0.0, 3.0, 30.0, 600.0)
"""Seconds by which an operator's wall clock is ahead after the fault ``clock set``."""


@dataclass(frozen=True)
class Fault:
    """One fault of a schedule."""

    number: int
    kind: str
    round: int
    at: float
    """Seconds after the begin of its round."""
    skip: int = 0
    """How many matching requests or events pass before it is injected, for the faults in the proxy."""
    seconds: float = 0.0
    pick: float = 0.0
    """Chooses one of the present objects or processes: at least 0, less than 1."""
    operator: str = OPERATORS[0]
    process: str = PROCESSES[0]

    def chosen(self, among: Sequence[T]) -> T:
        """The element of ``among``, which must not be empty, that this fault hits."""
        return among[int(self.pick * len(among))]


@dataclass(frozen=True)
class Timing:
    """How a run is divided into rounds. A round injects faults for ``chaos`` seconds, and then settles."""

    faults: int
    chaos: float = 45.0
    settle: float = 50.0
    """Estimated seconds of a round in which no fault is injected."""
    per_round: int = 40

    @property
    def rounds(self) -> int:
        return max(1, math.ceil(self.faults / self.per_round))

    @property
    def seconds(self) -> float:
        """The estimated duration of the run."""
        return self.rounds * (self.chaos + self.settle)


def counts(total: int, duration: float, kinds: Collection[Kind] = KINDS) -> dict[str, int]:
    """How often each kind occurs among ``total`` faults in ``duration`` seconds.

    Every kind occurs once if ``total`` allows; a kind with a ``gap`` occurs at most as often as the gap allows.
    """
    most = {kind.name: 1 + int(duration / kind.gap) if kind.gap else total for kind in kinds}
    found = dict.fromkeys((kind.name for kind in kinds), 0)
    ordered = sorted(kinds, key=lambda kind: -kind.weight)
    for _ in range(total):
        # the kind that is furthest behind its share; one that has not occurred comes first
        name = max(
            (kind for kind in ordered if found[kind.name] < most[kind.name]),
            key=lambda kind: math.inf if not found[kind.name] else kind.weight / found[kind.name],
        ).name
        found[name] += 1
    return found


def schedule(seed: int, timing: Timing, kinds: Collection[Kind] = KINDS) -> list[Fault]:
    """The faults of a run, ordered by round and time."""
    total = timing.faults
    source = random.Random(f"faults {seed}")
    rounds = timing.rounds
    names = [name for name, count in counts(total, timing.seconds, kinds).items() for _ in range(count)]
    source.shuffle(names)
    names = _spread(names, [kind.name for kind in kinds if kind.gap], rounds)
    faults: list[Fault] = []
    for number, name in enumerate(names):
        chosen = number * rounds // total
        faults.append(_fault(source, number, name, chosen, timing.chaos))
    return sorted(faults, key=lambda fault: (fault.round, fault.at, fault.number))


def _spread(names: Sequence[str], rare: Collection[str], rounds: int) -> list[str]:
    """Distribute the kinds with a gap evenly over the run; the first ones occur early, so that a short run has them."""
    others = [name for name in names if name not in rare]
    found = list(others)
    for shift, kind in enumerate(rare):
        count = sum(1 for name in names if name == kind)
        for occurrence in range(count):
            place = (occurrence + (shift + 1) / (len(rare) + 2)) * len(names) / max(1, count)
            found.insert(min(len(found), int(place)), kind)
    return found


def _fault(source: random.Random, number: int, name: str, chosen: int, chaos: float) -> Fault:
    kind = BY_NAME[name]
    return Fault(
        number,
        name,
        chosen,
        at=round(source.uniform(0, chaos), 2),
        skip=source.choice((0, 0, 0, 1, 2, 4)),
        seconds=round(source.uniform(*kind.seconds), 2),
        pick=source.random(),
        operator=source.choice(OPERATORS),
        process=source.choice(PROCESSES),
    )


def of_round(faults: Iterable[Fault], number: int) -> list[Fault]:
    return [fault for fault in faults if fault.round == number]
