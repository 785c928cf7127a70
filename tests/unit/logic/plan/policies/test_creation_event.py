"""Which Event a reconcile writes about the pods that it has created."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.creation_event import (
    is_recorded,
    of_result,
    only,
    text,
    without,
)
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import ApplyResult
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan
from support.builders import mxjob

PLANNED = EventNote("Normal", "SuccessfulCreatePod", "Created 4 of 7 pods: a, b, c, d")
OTHER = EventNote("Normal", "MXJobRunning", "it runs")
PLAN = Plan(pods=({}, {}), events=(PLANNED, OTHER))


@pytest.mark.parametrize(
    ("phase", "result", "expected"),
    [
        ("Creating", {}, []),
        ("Creating", {"created": ["Pod/a", "Job/b"]}, [PLANNED.message]),
        ("Creating", {"created": ["Pod/a", "Service/b"]}, []),
        ("Running", {"created": ["Pod/a", "Service/b"]}, ["Created 1 of 7 pods: a"]),
        ("Running", {"created": ["Pod/a", "Pod/b"], "deleted": ["Pod/a", "Pod/b"]}, []),
        ("Running", {"created": ["Service/b"]}, []),
    ],
)
def test_of_what_was_created(phase: str, result: dict[str, Any], expected: list[str]) -> None:
    job = mxjob().v1().workers(6).status(phase=phase).job()
    assert [event.message for event in of_result(job, PLAN, ApplyResult(**result))] == expected


def test_the_first_names_are_shown() -> None:
    job = mxjob().v1().workers(6).job()
    assert text(job, list("abcdef")) == "Created 6 of 7 pods: a, b, c, d, e, ..."
    assert (only(PLAN.events), without(PLAN.events)) == ((PLANNED,), (OTHER,))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, False),
        ({"status": {"conditions": None}}, False),
        ({"status": "of a tenant"}, False),
        ({"status": {"conditions": [{"type": "Created", "status": "True"}]}}, True),
    ],
)
def test_whether_the_creation_is_recorded(status: dict[str, Any], expected: bool) -> None:
    assert is_recorded(status) is expected
