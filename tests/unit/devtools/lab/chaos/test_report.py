"""The result as JSON and as Markdown."""

from __future__ import annotations

import json
from collections import Counter

from devtools.lab.chaos.history import Violation
from devtools.lab.chaos.report import Result, document


def result(**changes: object) -> Result:
    made = Result(
        seed=7,
        faults=3,
        minutes=2,
        facts={"this operator": "abc"},
        planned=Counter({"kill": 2, "conflict": 1}),
        injected=Counter({"kill": 2}),
        rounds=1,
        jobs=Counter({"Succeeded": 4}),
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_the_json_has_the_counts_by_kind() -> None:
    read = json.loads(json.dumps(result().to_json()))
    assert read["planned"] == {"kill": 2, "conflict": 1}
    assert read["injected"] == {"kill": 2}
    assert read["seed"] == 7


def test_the_table_has_a_row_for_each_planned_kind() -> None:
    text = document(result(), ["a rule"])
    assert "| 2 of 2 |" in text
    assert "| 0 of 1 |" in text
    assert "event cut" not in text
    assert "No violation." in text


def test_a_violation_has_its_seed_its_round_and_its_time() -> None:
    found = result(violations=[Violation("an orphan", "pod p", 12.3, 1)])
    assert not found.good
    assert "- seed 7, round 1, 12 s: **an orphan**: pod p" in document(found, [])


def test_an_interrupted_run_is_incomplete() -> None:
    found = result(problems=["the run was interrupted"])
    assert not found.good
    assert "- incomplete: the run was interrupted" in document(found, [])
