"""The result of a run, as JSON and as Markdown. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from devtools.lab.chaos.faults import KINDS
from devtools.lab.chaos.history import Violation


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


def table(planned: Mapping[str, int], injected: Mapping[str, int]) -> list[str]:
    """A row for each kind of fault."""
    rows = [
        f"| {kind.group} | {kind.name} | {kind.about} | {injected.get(kind.name, 0)} of {planned.get(kind.name, 0)} |"
        for kind in KINDS
        if planned.get(kind.name, 0)
    ]
    return ["| disturbs | fault | what happens | injected |", "| --- | --- | --- | --- |", *rows]


def _violations(result: Result) -> list[str]:
    if not result.violations:
        return ["No violation.", ""]
    lines = [
        f"- seed {result.seed}, round {v.round}, {v.at:.0f} s: **{v.rule}**: {v.detail}" for v in result.violations
    ]
    return [f"{len(lines)} violations:", "", *lines, ""]


def document(result: Result, rules: Sequence[str]) -> str:
    """CHAOS.md."""
    arguments = f"--seed {result.seed} --faults {result.faults} --minutes {result.minutes:g}"
    ended = ", ".join(f"{count} {state}" for state, count in sorted(result.jobs.items()))
    return "\n".join(
        [
            "# Faults",
            "",
            f'Written by `make chaos CHAOS="{arguments}"`.',
            "[docs/chaos.md](../docs/chaos.md) describes the faults, the checks and their limits.",
            "",
            *(f"- {key}: {value}" for key, value in result.facts.items()),
            f"- run: {result.total} faults in {result.rounds} rounds, {result.seconds / 60:.0f} minutes",
            f"- jobs: {ended or 'none'}; pods: {result.pods}",
            f"- operators: two, {result.starts} starts, {result.requests} requests without watches",
            f"- checked: {', '.join(rules)}",
            "",
            *_violations(result),
            *([f"- incomplete: {problem}" for problem in result.problems] + [""] if result.problems else []),
            *table(result.planned, result.injected),
            "",
        ]
    )
