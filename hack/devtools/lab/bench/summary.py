"""The samples of a run by workload and peer, and what the tables and the goals compare. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from devtools.lab.bench import plan
from devtools.lab.bench.measures import Sample, Spread, known, percentile, spread

NOTHING = "-"


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
