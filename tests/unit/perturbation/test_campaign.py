"""The command leaves out no position, and counts what it has tried."""

from __future__ import annotations

import pytest
from unit.perturbation import campaign
from unit.perturbation.__main__ import main
from unit.perturbation.model import NotAtRest, Perturbation, World
from unit.perturbation.perturbations import WINDOWS, Baseline, HiddenStates
from unit.perturbation.scenarios import scenarios

NAME = "mpi-success"
BASELINE = Baseline.of(next(one for one in scenarios() if one.name == NAME))
POSITIONS = len(BASELINE.positions)
BY_OPERATOR = sum(one.by_operator for one in BASELINE.positions)
WRITES = sum(one.by_operator and not one.what.startswith("GET") for one in BASELINE.positions)
RUNS = POSITIONS * 4 + BY_OPERATOR * 4 + WRITES
"""At each position three stale caches and a window of hidden states; two crashes and two lost responses a request; a
denial of each write."""


def disturbed(at: int, problem: Exception | None) -> object:
    """In place of the run: all ends are as the undisturbed one, but those with hidden states at this position."""

    def perturbed(baseline: Baseline, perturbation: Perturbation) -> World:
        if problem and isinstance(perturbation, HiddenStates) and perturbation.at == at:
            raise problem
        return baseline.end

    return perturbed


@pytest.mark.parametrize(
    ("problem", "differences"), [(None, 0), (NotAtRest("a write\nat rest"), 1)], ids=["none", "one"]
)
def test_every_position_is_tried_and_counted(
    problem: Exception | None,
    differences: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Baseline, "perturbed", disturbed(POSITIONS - 1, problem))
    assert main(["--only", NAME]) == differences
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{NAME}: {POSITIONS} positions, {RUNS} runs, {differences} differences"
    assert printed[-1] == f"1 scenarios, {POSITIONS} positions, {RUNS} runs, {differences} differences"
    assert [line.endswith(": a write") for line in printed[1:-1]] == [True] * differences


def test_all_windows_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Baseline, "perturbed", disturbed(0, None))
    scenario = next(one for one in scenarios() if one.name == NAME)
    more = campaign.every_position(scenario, (*WINDOWS, 5)).runs
    assert more == RUNS + POSITIONS * 4


def test_a_name_that_no_scenario_has_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "no such scenario"]) == 1
    assert capsys.readouterr().out == "0 scenarios, 0 positions, 0 runs, 0 differences\n"
