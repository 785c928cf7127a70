"""Every position of every scenario, with everything that may go wrong there: the end is the same."""

from __future__ import annotations

import os

import pytest
from unit.perturbation.model import NotAtRest, Scenario
from unit.perturbation.perturbations import (
    EXHAUSTIVE,
    WINDOWS,
    Baseline,
    CrashAt,
    HiddenStates,
    NoAnswer,
    Perturbation,
    StaleRestart,
    difference,
    perturbations,
)
from unit.perturbation.scenarios import scenarios

IS_EXHAUSTIVE = os.environ.get("DLJOB_PERTURBATION") == "exhaustive"

KNOWN: dict[tuple[str, type[Perturbation]], str] = {
    ("mxnet-map-restart-all", StaleRestart): (
        "restartScope Job: with a job from before the last restart and the pods of now, plan takes the pods of the newer "
        "attempt for leftovers and deletes them, so that the job restarts once more: status.attempt is 2 instead of 1"
    ),
}
"""Defects of the operator that these tests have found and that are not mended yet."""


def cases() -> list[object]:
    return [
        pytest.param(
            scenario,
            kind,
            id=f"{scenario.name}-{kind.__name__}",
            marks=[pytest.mark.xfail(strict=True, reason=KNOWN[scenario.name, kind])]
            if (scenario.name, kind) in KNOWN
            else [],
        )
        for scenario in scenarios()
        for kind in (CrashAt, NoAnswer, StaleRestart, HiddenStates)
    ]


@pytest.mark.parametrize(("scenario", "kind"), cases())
def test_the_end_is_the_same(scenario: Scenario, kind: type[Perturbation]) -> None:
    baseline = Baseline.of(scenario)
    assert baseline.end.all_actions_done, "the scenario is played to its end"
    problems = []
    all_of_kind = list(perturbations(kind, baseline.positions, EXHAUSTIVE if IS_EXHAUSTIVE else WINDOWS))
    for perturbation in all_of_kind:
        try:
            problem = difference(baseline.end, baseline.perturbed(perturbation), perturbation)
        except (AssertionError, NotAtRest) as e:
            problem = str(e).splitlines()[0]
        if problem:
            problems.append(f"{perturbation}, {baseline.positions[perturbation.at].what}: {problem}")
    print(
        f"{scenario.name}: {len(baseline.positions)} positions, {len(all_of_kind)} times {kind.__name__}, "
        f"{len(problems)} differences"
    )
    assert not problems, "\n".join(problems[:20])
