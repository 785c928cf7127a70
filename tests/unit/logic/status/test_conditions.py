"""The rules of v1's conditions."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.status import conditions
from ansible_collections.dljob.operator.plugins.module_utils.logic.status.conditions import Condition, NewCondition


def types_and_statuses(held: list[Condition]) -> list[tuple[str, str]]:
    return [(x["type"], x["status"]) for x in held]


def story(*types: str) -> list[Condition]:
    held: list[Condition] = []
    for second, type_ in enumerate(types):
        held = conditions.set_condition(held, NewCondition(type_, f"MXJob{type_}", f"it is {type_}"), f"t{second}")
    return held


def test_the_newest_condition_is_last() -> None:
    assert types_and_statuses(story("Created", "Running")) == [("Created", "True"), ("Running", "True")]


def test_running_and_restarting_exclude_each_other() -> None:
    assert types_and_statuses(story("Created", "Running", "Restarting")) == [
        ("Created", "True"),
        ("Restarting", "True"),
    ]
    assert types_and_statuses(story("Created", "Restarting", "Running")) == [("Created", "True"), ("Running", "True")]


@pytest.mark.parametrize("end", ["Succeeded", "Failed", "Suspended"])
def test_a_final_condition_sets_running_to_false(end: str) -> None:
    held = story("Created", "Running", end)
    assert types_and_statuses(held) == [("Created", "True"), ("Running", "False"), (end, "True")]
    assert (held[1]["lastUpdateTime"], held[1]["lastTransitionTime"]) == ("t2", "t2")
    assert (held[1]["reason"], held[1]["message"]) == (f"MXJob{end}", f"it is {end}"), "not that it runs"


def test_an_unchanged_condition_is_left_alone() -> None:
    held = story("Created", "Running")
    assert conditions.set_condition(held, NewCondition("Created", "MXJobCreated", "other words"), "later") == held


def test_a_new_reason_moves_it_to_the_end_and_keeps_its_transition() -> None:
    held = conditions.set_condition(story("Created", "Running"), NewCondition("Created", "Again", "words"), "t9")
    assert types_and_statuses(held) == [("Running", "True"), ("Created", "True")]
    assert held[-1] == {
        "type": "Created",
        "status": "True",
        "reason": "Again",
        "message": "words",
        "lastUpdateTime": "t9",
        "lastTransitionTime": "t0",
    }


def test_a_new_status_is_a_transition() -> None:
    held = conditions.set_condition(story("Suspended"), NewCondition("Suspended", "MXJobResumed", "", "False"), "t9")
    assert types_and_statuses(held) == [("Suspended", "False")]
    assert held[0]["lastTransitionTime"] == "t9"
    assert not conditions.is_condition_true(held, "Suspended")


def test_the_old_list_is_not_modified() -> None:
    held = story("Created", "Running")
    before = [dict(x) for x in held]
    conditions.set_condition(held, NewCondition("Failed", "r", "m"), "t")
    assert held == before


@pytest.mark.parametrize("status", [{}, {"conditions": None}, {"conditions": "x"}, {"conditions": [None]}])
def test_a_status_without_conditions(status: dict[str, object]) -> None:
    assert conditions.read_conditions(status) == []
