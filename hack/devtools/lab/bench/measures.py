"""Samples, their statistics, and what the tables and the goals compare of a run. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from devtools.lab.bench import plan

NOTHING = "-"


@dataclass(frozen=True)
class Sample:
    """One workload's measurements with one peer in one round. Times are seconds; ``None`` is an event that never came.

    ``first_pod``, ``all_pods`` and ``running`` have one entry for each job, from its acceptance by the API server;
    ``wall`` is from the first acceptance to the last pod, ``wall_running`` to the last status Running. ``note`` has the
    reason for an incomplete sample.
    """

    workload: str
    peer: str
    round: int
    jobs: int
    pods: int
    first_pod: tuple[float | None, ...] = ()
    all_pods: tuple[float | None, ...] = ()
    running: tuple[float | None, ...] = ()
    wall: float | None = None
    wall_running: float | None = None
    pods_made: int = 0
    seconds: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    reconciles: float = 0.0
    cpu: float = 0.0
    peak_bytes: int = 0
    note: str = ""
    extra: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Sample:
        lists = ("first_pod", "all_pods", "running")
        values: dict[str, Any] = {key: tuple(value) if key in lists else value for key, value in data.items()}
        return cls(**values)

    @property
    def complete(self) -> bool:
        return self.wall is not None

    @property
    def least(self) -> float | None:
        """The wall time or, if it was stopped early, the time extrapolated from its rate, as a lower bound."""
        if self.wall is not None:
            return self.wall
        return self.seconds * self.pods / self.pods_made if self.pods_made else None


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that ``share`` (0 to 1) of all values do not exceed. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True)
class Spread:
    """The median and the range of several rounds."""

    median: float
    low: float
    high: float
    rounds: int


def spread(values: Sequence[float]) -> Spread | None:
    """``None`` for no values."""
    return Spread(statistics.median(values), min(values), max(values), len(values)) if values else None


def known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


class Samples:
    """All samples of a run, by workload and peer."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._all = list(samples)

    def workloads(self) -> list[str]:
        return list(dict.fromkeys(sample.workload for sample in self._all))

    def of(self, workload: str, peer: str) -> list[Sample]:
        return [sample for sample in self._all if (sample.workload, sample.peer) == (workload, peer)]

    def wall(self, workload: str, peer: str) -> Spread | None:
        return spread([least for sample in self.of(workload, peer) if (least := sample.least) is not None])

    def p(self, workload: str, peer: str, share: float, what: str = "all_pods") -> float | None:
        values = known([value for sample in self.of(workload, peer) for value in getattr(sample, what)])
        return percentile(values, share) if values else None


def seconds(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def ratio(ours: float | None, theirs: float | None) -> str:
    """Their time divided by ours; below 1 they are faster."""
    return NOTHING if not ours or theirs is None else f"{theirs / ours:.2f}"


def time_of(samples: Samples, workload: str, peer: str) -> Spread | None:
    """The time that goals compare: the median of a job if they are created one by one, else until the last pod."""
    if workload in (plan.ONE, plan.ALONE, plan.FINISHED, plan.CHANGE, plan.BEFORE, plan.BESIDE):
        medians = [percentile(values, 0.5) for s in samples.of(workload, peer) if (values := known(s.all_pods))]
        return spread(medians)
    return samples.wall(workload, peer)


def mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0
