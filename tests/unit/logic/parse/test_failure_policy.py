"""podFailurePolicy and maxRestartsPerReplica of a job: what is read, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.pod_failure_policy import (
    FailureRule,
    OnExitCodes,
    OnPodConditions,
    OnTerminationReasons,
)
from support.builders import CAFFE2, MXNET, MXJob, caffe2job, mxjob

PATH = "spec.runPolicy.podFailurePolicy"
ON_CODES = {"operator": "In", "values": [3]}


def with_rules(*rules: Any, **run_policy: Any) -> MXJob:
    return mxjob().v1().workers(1).run_policy(podFailurePolicy={"rules": list(rules)}, **run_policy)


def errors(job: MXJob) -> list[str]:
    try:
        parse_job(job.resource(), MXNET)
    except InvalidJob as e:
        return list(e.problems)
    return []


def test_rules() -> None:
    job = with_rules(
        {"action": "FailJob", "onExitCodes": {**ON_CODES, "containerName": "mxnet"}},
        {"action": "RestartJob", "onTerminationReasons": {"operator": "NotIn", "values": ["OOMKilled"]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}, {"type": "x", "status": "False"}]},
        maxRestartsPerReplica=2,
    ).job()
    assert job.run_policy.failure_rules == (
        FailureRule("FailJob", OnExitCodes("In", frozenset({3}), "mxnet")),
        FailureRule("RestartJob", OnTerminationReasons("NotIn", frozenset({"OOMKilled"}))),
        FailureRule("Ignore", OnPodConditions((("DisruptionTarget", "True"), ("x", "False")))),
    )
    assert job.run_policy.max_restarts_per_replica == 2


@pytest.mark.parametrize(
    "requirement",
    [
        {"onExitCodes": {"operator": "In", "values": [*range(1, 256)]}},
        {"onTerminationReasons": {"operator": "In", "values": [f"Reason{number}" for number in range(20)]}},
    ],
)
def test_as_many_values_as_are_permitted(requirement: dict[str, Any]) -> None:
    assert errors(with_rules({"action": "FailJob", **requirement})) == []


def test_without_a_policy() -> None:
    policy = mxjob().v1().workers(1).job().run_policy
    assert (policy.failure_rules, policy.max_restarts_per_replica) == ((), None)


def test_other_flavors_have_it_too() -> None:
    rules = [{"action": "FailJob", "onExitCodes": ON_CODES}]
    resource = caffe2job(2, runPolicy={"podFailurePolicy": {"rules": rules}})
    for job in (parse_job(resource, CAFFE2), mxjob().v1alpha1().run_policy(podFailurePolicy={"rules": rules}).job()):
        assert len(job.run_policy.failure_rules) == 1


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([], f"{PATH} must be a map with rules"),
        ({}, f"{PATH}.rules must be a list, not None"),
        ({"rules": "x"}, f"{PATH}.rules must be a list, not 'x'"),
        ({"rules": [], "x": 1}, f"{PATH}.x is unknown: use rules"),
        (
            {"rules": [{"action": "Count", "onExitCodes": ON_CODES}] * 21},
            f"{PATH}.rules has 21 entries: use at most 20",
        ),
    ],
)
def test_a_policy_that_is_refused(policy: Any, message: str) -> None:
    assert errors(mxjob().v1().workers(1).run_policy(podFailurePolicy=policy)) == [message]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (["x"], " must be a map with action and one of onExitCodes, onTerminationReasons, onPodConditions"),
        (
            {"onExitCodes": ON_CODES},
            ".action: None is none of FailJob, Restart, RestartJob, Ignore, Count",
        ),
        (
            {"action": "FailIndex", "onExitCodes": ON_CODES},
            ".action: 'FailIndex' is none of FailJob, Restart, RestartJob, Ignore, Count",
        ),
        (
            {"action": "Count"},
            " has none of them: give exactly one of onExitCodes, onTerminationReasons, onPodConditions",
        ),
        (
            {"action": "Count", "onExitCodes": ON_CODES, "onPodConditions": [{"type": "x"}]},
            " has onExitCodes and onPodConditions: give exactly one of onExitCodes, onTerminationReasons, "
            "onPodConditions",
        ),
        (
            {"action": "Count", "onExitCodes": ON_CODES, "onExitCode": 1},
            ".onExitCode is unknown: use action, onExitCodes, ",
        ),
        ({"action": "Count", "onExitCodes": [3]}, ".onExitCodes must be a map with operator and values"),
        ({"action": "Count", "onExitCodes": {"values": [3]}}, ".onExitCodes.operator: None is none of In, NotIn"),
        ({"action": "Count", "onExitCodes": {"operator": "In"}}, ".onExitCodes.values must be a list, not None"),
        (
            {"action": "Count", "onExitCodes": {**ON_CODES, "values": []}},
            ".onExitCodes.values is empty: list at least one exit code",
        ),
        (
            {"action": "Count", "onExitCodes": {**ON_CODES, "container": "a"}},
            ".onExitCodes.container is unknown: use containerName, operator, values",
        ),
        (
            {"action": "Count", "onExitCodes": {**ON_CODES, "values": [*range(1, 257)]}},
            ".onExitCodes.values has 256 entries: use at most 255",
        ),
        (
            {"action": "Count", "onTerminationReasons": {"operator": "In", "values": ["a"] * 21}},
            ".onTerminationReasons.values has 21 entries: use at most 20",
        ),
        (
            {"action": "Count", "onExitCodes": {**ON_CODES, "values": [-1]}},
            ".onExitCodes.values: -1 is no exit code: use numbers between 0 and 255",
        ),
        ({"action": "Count", "onExitCodes": {**ON_CODES, "values": [0]}}, ".onExitCodes.values has 0, with which a "),
        ({"action": "Count", "onExitCodes": {**ON_CODES, "values": [256]}}, ".onExitCodes.values: 256 is no exit code"),
        ({"action": "Count", "onExitCodes": {**ON_CODES, "values": ["3"]}}, ".onExitCodes.values: '3' is no exit code"),
        (
            {"action": "Count", "onExitCodes": {**ON_CODES, "values": [True]}},
            ".onExitCodes.values: True is no exit code",
        ),
        ({"action": "Count", "onExitCodes": {**ON_CODES, "containerName": 3}}, ".onExitCodes.containerName must be "),
        (
            {"action": "Count", "onExitCodes": {**ON_CODES, "containerName": "tensorflow"}},
            ".onExitCodes.containerName: no template has a container 'tensorflow'; there are: mxnet",
        ),
        (
            {"action": "Count", "onTerminationReasons": {"operator": "In", "values": [137]}},
            ".onTerminationReasons.values: 137 is no reason of the kubelet, such as OOMKilled or Error: use one",
        ),
        (
            {"action": "Count", "onTerminationReasons": {"operator": "In", "values": []}},
            ".onTerminationReasons.values is empty: list at least one reason",
        ),
        ({"action": "Count", "onPodConditions": []}, ".onPodConditions is empty: list at least one condition"),
        (
            {"action": "Count", "onPodConditions": [{"type": 3}]},
            ".onPodConditions[0].type is missing: give the type of",
        ),
        (
            {"action": "Count", "onPodConditions": [{"type": ""}]},
            ".onPodConditions[0].type is missing: give the type of",
        ),
        ({"action": "Count", "onPodConditions": [{}]}, ".onPodConditions[0].type is missing: give the type of a pod's"),
        (
            {"action": "Count", "onPodConditions": [{"type": "x", "status": True}]},
            ".onPodConditions[0].status: True is none of True, False, Unknown",
        ),
        (
            {"action": "Count", "onPodConditions": [{"type": "x", "state": "False"}]},
            ".onPodConditions[0].state is unknown: use type, status",
        ),
    ],
)
def test_a_rule_that_is_refused(rule: Any, message: str) -> None:
    found = errors(with_rules({"action": "Count", "onExitCodes": ON_CODES}, rule))
    assert any(text.startswith(f"{PATH}.rules[1]{message}") for text in found), found


def test_an_init_container_can_be_named() -> None:
    job = with_rules({"action": "Count", "onExitCodes": {**ON_CODES, "containerName": "data"}})
    job.pod("Worker", initContainers=[{"name": "data", "image": "data:1"}])
    assert errors(job) == []


RESTART = {"action": "Restart", "onExitCodes": ON_CODES}


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (
            with_rules(RESTART, restartScope="Job").restart("OnFailure"),
            f"{PATH}.rules[0].action is Restart, of one replica, but with restartScope Job all restart together: use "
            "RestartJob, or restartScope Replica",
        ),
        (
            with_rules(RESTART).restart("Always", "Worker"),
            "spec.mxReplicaSpecs.Worker: with restartPolicy Always a replica restarts even after success",
        ),
        (
            mxjob().v1().workers(1).run_policy(maxRestartsPerReplica=2, restartScope="Job").restart("OnFailure"),
            "spec.runPolicy.maxRestartsPerReplica counts the restarts of single replicas, which restartScope Job does",
        ),
        (
            mxjob().v1().workers(1).run_policy(maxRestartsPerReplica=-1),
            "spec.runPolicy.maxRestartsPerReplica is -1: it must be between 0 and ",
        ),
    ],
)
def test_contradictions(job: MXJob, message: str) -> None:
    (found,) = errors(job)
    assert found.startswith(message)
