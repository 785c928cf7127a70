"""The kinds of faults, from faults.yaml, and the schedule that follows from a seed.

The seed determines which faults occur, their order, their times and their parameters. Which request or object a fault
hits depends also on the time at which the operator sends it, so two runs of a seed have the same faults on a similar,
not on an identical, history.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from devtools.definitions import load

T = TypeVar("T")
WRITES, UPDATES, LEASES = "writes", "updates", "leases"
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
    seconds: Sequence[float] = (0.0, 0.0)
    """The bounds of its duration, where it has one."""
    gap: float = 0.0
    """Minimum seconds between two of this kind: the kubelet restarts a static pod later after each of its ends."""
    only: str = ""
    """The requests that it hits: WRITES, UPDATES, LEASES (updates of the Lease), or all of them."""


KINDS = tuple(
    Kind(name, group, **more)
    for group, several in load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")).items()
    for name, more in several.items()
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
    faults = [_fault(source, n, name, n * rounds // total, timing.chaos) for n, name in enumerate(names)]
    return sorted(faults, key=lambda fault: (fault.round, fault.at, fault.number))


def _spread(names: Sequence[str], rare: Collection[str], rounds: int) -> list[str]:
    """Distribute the kinds with a gap evenly over the run; the first ones occur early, so that a short run has them."""
    found = [name for name in names if name not in rare]
    for shift, kind in enumerate(rare):
        count = names.count(kind)
        for occurrence in range(count):
            place = (occurrence + (shift + 1) / (len(rare) + 2)) * len(names) / max(1, count)
            found.insert(min(len(found), int(place)), kind)
    return found


def _fault(source: random.Random, number: int, name: str, chosen: int, chaos: float) -> Fault:
    kind = BY_NAME[name]
    return Fault(
        number, name, chosen,
        at=round(source.uniform(0, chaos), 2),
        skip=source.choice((0, 0, 0, 1, 2, 4)),
        seconds=round(source.uniform(*kind.seconds), 2),
        pick=source.random(),
        operator=source.choice(OPERATORS),
        process=source.choice(PROCESSES),
    )  # fmt: skip
