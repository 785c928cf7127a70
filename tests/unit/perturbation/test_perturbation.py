"""Every scenario, with what may go wrong at its positions: the end is the same.

The default tries a part of it, the same in every run; ``DLJOB_PERTURBATION=exhaustive`` everything, in all windows.
``__main__.py`` and the tests of `make test-full` try everything in the default window; the former prints the figures of
docs/reliability.md.
"""

from __future__ import annotations

import os
import random

import pytest
from unit.perturbation.campaign import KINDS, differences, every_position
from unit.perturbation.model import BOTH, JOBS, OWNED, Perturbation, Scenario
from unit.perturbation.perturbations import EXHAUSTIVE, WINDOWS, Baseline, StaleRestart, difference, perturbations
from unit.perturbation.scenarios import scenarios

SHARE = 0.55
"""Of the perturbations that the default tries."""
IS_EXHAUSTIVE = os.environ.get("DLJOB_PERTURBATION") == "exhaustive"


def cases() -> list[object]:
    return [
        pytest.param(scenario, kind, id=f"{scenario.name}-{kind.__name__}")
        for scenario in scenarios()
        for kind in KINDS
    ]


@pytest.mark.parametrize(("scenario", "kind"), cases())
def test_the_end_is_the_same(scenario: Scenario, kind: type[Perturbation]) -> None:
    baseline = Baseline.of(scenario)
    assert baseline.end.all_actions_done, "the scenario is played to its end"
    tried = list(perturbations(kind, baseline.positions, EXHAUSTIVE if IS_EXHAUSTIVE else WINDOWS))
    if not IS_EXHAUSTIVE:
        tried = random.Random(f"{scenario.name} {kind.__name__}").sample(tried, round(len(tried) * SHARE))
    problems = differences(baseline, tried)
    print(
        f"{scenario.name}: {len(baseline.positions)} positions, {len(tried)} times {kind.__name__}, "
        f"{len(problems)} differences"
    )
    assert not problems, "\n".join(problems[:20])


@pytest.mark.full
@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
def test_the_end_is_the_same_at_every_position(scenario: Scenario) -> None:
    assert not every_position(scenario, WINDOWS).differences


REGRESSIONS = [
    # what is missing in the cache may only not have arrived yet: it restarted the whole job
    ("mxnet-map-restart-all", StaleRestart(11, 6, (OWNED,))),
    ("mxnet-map-restart-all", StaleRestart(27, 5, (OWNED,))),
    ("mxnet-map-restart-all", StaleRestart(27, 9, BOTH)),
    # the pods may be those of a newer spec than the cached one: it deleted the added workers
    ("autoscaler", StaleRestart(41, 5, (JOBS,))),
]


@pytest.mark.parametrize(("name", "perturbation"), REGRESSIONS, ids=map(str, REGRESSIONS))
def test_what_the_exhaustive_run_has_found(name: str, perturbation: StaleRestart) -> None:
    baseline = Baseline.of(next(scenario for scenario in scenarios() if scenario.name == name))
    assert not difference(baseline.end, baseline.perturbed(perturbation), perturbation)
