"""Perturbed runs of a scenario and how their ends differ: for the test, and for the command that leaves out nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unit.perturbation.model import NotAtRest, Perturbation, Scenario
from unit.perturbation.perturbations import (
    Baseline,
    CrashAt,
    Denied,
    HiddenStates,
    NoAnswer,
    StaleRestart,
    difference,
    perturbations,
)

KINDS = (CrashAt, NoAnswer, Denied, StaleRestart, HiddenStates)


def differences(baseline: Baseline, tried: Iterable[Perturbation]) -> list[str]:
    """How the ends of the runs with these perturbations differ from that of the undisturbed run."""
    found = []
    for perturbation in tried:
        try:
            problem = difference(baseline.end, baseline.perturbed(perturbation), perturbation)
        except (AssertionError, NotAtRest) as e:
            problem = str(e).splitlines()[0]
        if problem:
            found.append(f"{perturbation}, {baseline.positions[perturbation.at].what}: {problem}")
    return found


@dataclass(frozen=True)
class Figures:
    """The runs of one scenario."""

    name: str
    positions: int
    runs: int
    differences: tuple[str, ...]


def every_position(scenario: Scenario, windows: Sequence[int]) -> Figures:
    """All perturbations of all kinds at all positions, with these windows."""
    baseline = Baseline.of(scenario)
    assert baseline.end.all_actions_done, "the scenario is played to its end"
    tried = [one for kind in KINDS for one in perturbations(kind, baseline.positions, windows)]
    return Figures(scenario.name, len(baseline.positions), len(tried), tuple(differences(baseline, tried)))


def total(figures: Sequence[Figures]) -> str:
    """The sums as a sentence."""
    positions, runs = sum(one.positions for one in figures), sum(one.runs for one in figures)
    found = sum(len(one.differences) for one in figures)
    return f"{len(figures)} scenarios, {positions:,} positions, {runs:,} runs, {found} differences"
