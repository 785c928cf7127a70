"""Every position of every scenario, with everything that may go wrong there: the end is the same."""

from __future__ import annotations

import os

import pytest
from unit.perturbation.model import BOTH, OWNED, NotAtRest, Scenario
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


def cases() -> list[object]:
    return [
        pytest.param(scenario, kind, id=f"{scenario.name}-{kind.__name__}")
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


REGRESSIONS = [
    # what is missing in the cache may only not have arrived yet: it restarted the whole job
    ("mxnet-map-restart-all", StaleRestart(11, 6, (OWNED,))),
    ("mxnet-map-restart-all", StaleRestart(27, 5, (OWNED,))),
    ("mxnet-map-restart-all", StaleRestart(27, 9, BOTH)),
]


@pytest.mark.parametrize(("name", "perturbation"), REGRESSIONS, ids=map(str, REGRESSIONS))
def test_what_the_exhaustive_run_has_found(name: str, perturbation: StaleRestart) -> None:
    baseline = Baseline.of(next(scenario for scenario in scenarios() if scenario.name == name))
    assert not difference(baseline.end, baseline.perturbed(perturbation), perturbation)
