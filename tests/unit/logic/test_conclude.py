"""From the result of applying a plan to what the reconcile reports."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.conclude import (
    PREDECESSOR,
    PREDECESSOR_REQUEUE,
    RETRY_REQUEUE,
    conclude,
    defer,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies.initial_status import LATEST
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import (
    ApplyResult,
    Conclusion,
    Resolution,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan
from support.builders import MXNET, NOW, mxjob

JOB = parse_job(mxjob("digits").v1().workers(1).resource(), MXNET)
AS_PLANNED = {"phase": "Creating"}


def concluded(result: ApplyResult, planned: float | None = None, **resolution: Any) -> Conclusion:
    plan = Plan(status=AS_PLANNED, requeue_after=planned)
    return conclude(JOB, Resolution(plan, **resolution), result, NOW)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        pytest.param({}, None, id="all written"),
        pytest.param({"waiting": ["Pod/a"]}, None, id="an own pod terminates"),
        pytest.param({"optional_failures": ["Route: no"]}, "Route: no", id="not needed"),
        pytest.param({"postponed": ["Pod/a: quota"]}, "Pod/a: quota", id="for now"),
        pytest.param({"postponed": ["Pod/a: quota"], "optional_failures": ["Route: no"]}, "Pod/a: quota", id="both"),
        pytest.param({"predecessors": ["Pod/a", "Pod/b"]}, PREDECESSOR, id="predecessor"),
        pytest.param(
            {"refused": ["Pod/a: bad"], "postponed": ["Pod/b: quota"]}, "RefusedByKubernetes: Pod/a: bad", id="failed"
        ),
    ],
)
def test_the_reason(result: dict[str, list[str]], reason: str | None) -> None:
    made = concluded(ApplyResult(**result))
    assert made.status and made.status.get("reason") == reason


@pytest.mark.parametrize(
    ("result", "planned", "expected"),
    [
        ({}, None, None),
        ({}, 0.0, 0.0),
        ({"waiting": ["Pod/a"]}, None, RETRY_REQUEUE),
        ({"postponed": ["Pod/a"]}, 1.0, 1.0),
        ({"postponed": ["Pod/a"]}, 0.0, RETRY_REQUEUE),
        ({"postponed": ["Pod/a"]}, 600.0, RETRY_REQUEUE),
        ({"predecessors": ["Pod/a"], "postponed": ["Pod/b"]}, 600.0, PREDECESSOR_REQUEUE),
        ({"optional_failures": ["Route"]}, 600.0, 600.0),
        ({"refused": ["Pod/a"]}, 600.0, 0.0),
    ],
)
def test_the_next_reconcile(result: dict[str, list[str]], planned: float | None, expected: float | None) -> None:
    assert concluded(ApplyResult(**result), planned).requeue_after == expected


@pytest.mark.parametrize(("planned", "expected"), [(None, 30.0), (5.0, 5.0), (60.0, 30.0)])
def test_a_wrong_config_map_is_read_again_where_no_watch_event_follows(planned: float | None, expected: float) -> None:
    made = concluded(ApplyResult(), planned, problems=("ConfigMap a/b: wrong",), requeue_after=30.0)
    assert made.status and made.status["reason"] == "ConfigMap a/b: wrong"
    assert made.requeue_after == expected


@pytest.mark.parametrize(("before", "after"), [(None, LATEST), (0.2, 0.2), (60.0, LATEST)])
def test_a_deferred_status_is_due_within_a_second(before: float | None, after: float) -> None:
    assert defer(Conclusion(AS_PLANNED, (), before, "message")) == Conclusion(None, (), after, "message")
