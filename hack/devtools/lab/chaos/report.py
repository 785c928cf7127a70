"""The result of a run, as JSON and as Markdown. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from devtools.lab.chaos.faults import KINDS
from devtools.lab.chaos.history import Violation
from devtools.testbed.report import listed, table


@dataclass
class Result:
    """What a run has done and found."""

    seed: int
    faults: int
    """How many were planned."""
    minutes: float
    facts: Mapping[str, str] = field(default_factory=dict)
    """Of the machine and the commit."""
    planned: Counter[str] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    """Those that were completed."""
    seconds: float = 0.0
    jobs: Counter[str] = field(default_factory=Counter)
    """Jobs by final state; "deleted" for those that a fault deleted."""
    pods: int = 0
    starts: int = 0
    """Starts of operator processes."""
    requests: int = 0
    """Requests of the operators that reached the API server, without watches."""
    violations: list[Violation] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Failures of this tool or of the cluster, which make the run incomplete."""

    @property
    def total(self) -> int:
        return sum(self.injected.values())

    @property
    def good(self) -> bool:
        return not self.violations and not self.problems

    def to_json(self) -> dict[str, Any]:
        # not asdict of the whole: it would make a Counter count the pairs of its items
        return vars(self) | {"violations": [asdict(violation) for violation in self.violations]}


def document(result: Result, rules: Sequence[str]) -> str:
    """CHAOS.md, with a row for each kind of fault that was planned."""
    arguments = f"--seed {result.seed} --faults {result.faults} --minutes {result.minutes:g}"
    ended = ", ".join(f"{count} {state}" for state, count in sorted(result.jobs.items()))
    seed = f"- seed {result.seed}, round"
    found = [f"{seed} {v.round}, {v.at:.0f} s: **{v.rule}**: {v.detail}" for v in result.violations]
    kinds = [kind for kind in KINDS if result.planned[kind.name]]
    counts = {kind.name: f"{result.injected[kind.name]} of {result.planned[kind.name]}" for kind in kinds}
    lines = [
        "# Faults",
        "",
        f'Written by `make chaos CHAOS="{arguments}"`.',
        "[docs/chaos.md](../docs/chaos.md) describes the faults, the checks and their limits.",
        "",
        *listed(result.facts),
        f"- run: {result.total} faults in {result.rounds} rounds, {result.seconds / 60:.0f} minutes",
        f"- jobs: {ended or 'none'}; pods: {result.pods}",
        f"- operators: two, {result.starts} starts, {result.requests} requests without watches",
        f"- checked: {', '.join(rules)}",
        "",
        *([f"{len(found)} violations:", "", *found] if found else ["No violation."]),
        "",
        *([f"- incomplete: {problem}" for problem in result.problems] + [""] if result.problems else []),
        *table(
            ("disturbs", "fault", "what happens", "injected"),
            ((kind.group, kind.name, kind.about, counts[kind.name]) for kind in kinds),
        ),
        "",
    ]
    return "\n".join(lines)
