"""podFailurePolicy: which rule decides about a pod."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.pod_failure_policy import (
    Match,
    first_match,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import ContainerFailure, PodState
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    ACTIONS,
    CONDITION_STATUSES,
    OPERATORS,
    FailureRule,
    OnExitCodes,
    OnPodConditions,
    OnTerminationReasons,
    Requirement,
)
from hypothesis import given
from hypothesis import strategies as st
from support.builders import Pod, Resource, mxjob, pod_of

JOB = mxjob().v1().workers(1).job()


def codes(*values: int, operator: str = "In", container: str = "") -> OnExitCodes:
    return OnExitCodes(operator, frozenset(values), container)


def reasons(*values: str, operator: str = "In", container: str = "") -> OnTerminationReasons:
    return OnTerminationReasons(operator, frozenset(values), container)


def condition(type_: str = "DisruptionTarget", status: str = "True") -> OnPodConditions:
    return OnPodConditions(((type_, status),))


def failed(code: int = 3, reason: str = "Error") -> Pod:
    return pod_of(JOB, "worker").failed(code, reason)


def sidecar(code: int, field: str = "containerStatuses") -> Any:
    """Add a second container, or init container, that has ended with that code."""

    def change(pod: Resource) -> None:
        ended = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}
        pod["status"].setdefault(field, []).append({"name": "sidecar", "state": ended})

    return change


@pytest.mark.parametrize(
    ("requirement", "pod", "matches"),
    [
        pytest.param(codes(3), failed(3), True, id="the code"),
        pytest.param(codes(1, 2), failed(3), False, id="another code"),
        pytest.param(codes(1, 2, operator="NotIn"), failed(3), True, id="not one of the codes"),
        pytest.param(codes(3, operator="NotIn"), failed(3), False, id="one of the codes"),
        pytest.param(codes(3, container="mxnet"), failed(3), True, id="the container"),
        pytest.param(codes(3, container="other"), failed(3), False, id="another container"),
        pytest.param(codes(5), failed(3).change(sidecar(5)), True, id="any container"),
        pytest.param(codes(5, container="sidecar"), failed(3).change(sidecar(5)), True, id="a sidecar"),
        pytest.param(codes(5, container="mxnet"), failed(3).change(sidecar(5)), False, id="not the sidecar"),
        pytest.param(codes(3, operator="NotIn"), failed(3).change(sidecar(0)), False, id="one that ended with 0"),
        pytest.param(codes(5), failed(3).change(sidecar(5, "initContainerStatuses")), True, id="an init container"),
        pytest.param(codes(1), pod_of(JOB, "worker").refused_by_node(), False, id="no container ran"),
        pytest.param(codes(1, operator="NotIn"), pod_of(JOB, "worker").refused_by_node(), False, id="none, NotIn"),
        pytest.param(codes(3), pod_of(JOB, "worker").restarted(3), False, id="restarted in place since"),
        pytest.param(codes(3), failed(3).deleting(), False, id="being deleted"),
        pytest.param(reasons("OOMKilled"), failed(137, "OOMKilled"), True, id="out of memory"),
        pytest.param(reasons("OOMKilled"), failed(137), False, id="killed for another reason"),
        pytest.param(reasons("OOMKilled", operator="NotIn"), failed(137), True, id="not out of memory"),
        pytest.param(reasons("OOMKilled", container="other"), failed(137, "OOMKilled"), False, id="of another"),
        pytest.param(reasons("OOMKilled"), failed(137, "OOMKilled").deleting(), False, id="reason, being deleted"),
        pytest.param(condition(), failed().disrupted(), True, id="a condition"),
        pytest.param(condition(), failed(), False, id="no condition"),
        pytest.param(condition(status="False"), failed().disrupted(), False, id="of another status"),
        pytest.param(condition("Ready"), failed().disrupted(), False, id="of another type"),
        pytest.param(condition(), failed().disrupted().deleting(), True, id="a condition, being deleted"),
        pytest.param(
            OnPodConditions((("Ready", "True"), ("DisruptionTarget", "True"))), failed().disrupted(), True, id="any"
        ),
        pytest.param(OnPodConditions(()), failed().disrupted(), False, id="an empty list"),
    ],
)
def test_a_requirement(requirement: Requirement, pod: Pod, matches: bool) -> None:
    found = first_match([FailureRule("Ignore", requirement)], pod.view())
    assert (found is not None) == matches


def test_the_match_names_its_cause() -> None:
    rules = [FailureRule("Count", codes(9)), FailureRule("FailJob", codes(3)), FailureRule("Ignore", codes(3))]
    assert first_match(rules, failed().view()) == Match(1, "FailJob", ContainerFailure("mxnet", 3, "Error"))
    rules = [FailureRule("Restart", condition())]
    found = first_match(rules, failed().disrupted().view())
    assert found == Match(0, "Restart", condition=("DisruptionTarget", "True"))


_NAMES = st.sampled_from(["", "mxnet", "sidecar", "other"])
_CODES = st.integers(0, 255)
_REASONS = st.sampled_from(["", "Error", "OOMKilled", "ContainerCannotRun"])
_CONDITIONS = st.tuples(st.sampled_from(["DisruptionTarget", "Ready", "x"]), st.sampled_from(CONDITION_STATUSES))
_REQUIREMENTS = st.one_of(
    st.builds(OnExitCodes, st.sampled_from(OPERATORS), st.frozensets(_CODES, max_size=4), _NAMES),
    st.builds(OnTerminationReasons, st.sampled_from(OPERATORS), st.frozensets(_REASONS, max_size=3), _NAMES),
    st.builds(OnPodConditions, st.lists(_CONDITIONS, max_size=3).map(tuple)),
)
_RULES = st.lists(st.builds(FailureRule, st.sampled_from(ACTIONS), _REQUIREMENTS), max_size=6)
_FAILURES = st.builds(ContainerFailure, st.sampled_from(["mxnet", "sidecar"]), st.integers(1, 255), _REASONS)
_VIEW = failed().view()


@st.composite
def pods(draw: st.DrawFn) -> PodState:
    return dataclasses.replace(
        _VIEW,
        deleting=draw(st.sampled_from(["", "2026-01-02T12:00:30Z"])),
        conditions=tuple(draw(st.lists(_CONDITIONS, max_size=3))),
        failed_containers=tuple(draw(st.lists(_FAILURES, max_size=3))),
    )


def _satisfied(requirement: Requirement, pod: PodState) -> bool:
    """The definition, in other words."""
    if isinstance(requirement, OnPodConditions):
        return bool(set(requirement.conditions) & set(pod.conditions))
    of_interest = [f for f in pod.failed_containers if requirement.container in ("", f.name)]
    values = [f.code if isinstance(requirement, OnExitCodes) else f.reason for f in of_interest]
    among = [value in requirement.values for value in values]
    return not pod.deleting and (any(among) if requirement.operator == "In" else not all(among))


@given(_RULES, pods())
def test_the_first_rule_that_matches_decides(rules: list[FailureRule], pod: PodState) -> None:
    """For any rules and any pod: there is an answer, and it is the first rule that is satisfied by itself."""
    expected = next((index for index, rule in enumerate(rules) if _satisfied(rule.requirement, pod)), None)
    found = first_match(rules, pod)
    assert (found.index if found else None) == expected
    if found:
        assert found.action == rules[found.index].action
        assert (found.container is None) != (found.condition is None)
