"""Validation of runPolicy.podFailurePolicy and maxRestartsPerReplica by the CRDs, whose schema of them is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import kinds
from support.builders import caffe2job, jaxjob, tfjob

Job = dict[str, Any]
ON_CODES = {"operator": "In", "values": [3]}
RULES = [
    {"action": "FailJob", "onExitCodes": {**ON_CODES, "containerName": "jax"}},
    {"action": "RestartJob", "onTerminationReasons": {"operator": "NotIn", "values": ["OOMKilled", "Error"]}},
    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}, {"type": "x", "status": "Unknown"}]},
    {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": list(range(255))}},
    {"action": "Restart", "onExitCodes": ON_CODES},
]


def with_policy(job: Job, *rules: Any, restart: str = "", **run_policy: Any) -> Job:
    """As a user writes it."""
    job["metadata"] = {"name": job["metadata"]["name"]}
    job["spec"]["runPolicy"] = {"podFailurePolicy": {"rules": list(rules)}, **run_policy}
    if restart:
        job["spec"]["jaxReplicaSpecs"]["Worker"]["restartPolicy"] = restart
    return job


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1), id="TFJob"),
        pytest.param(tfjob("kubeflow.org/v1alpha1", master=1, worker=1), id="TFJob v1alpha1"),
        pytest.param(tfjob(master=1, worker=1), id="TfJob"),
        *(pytest.param(job, id=kind) for kind, (_, job) in kinds.plain_jobs(1).items()),
        pytest.param(caffe2job(2), id="Caffe2Job"),
    ],
)
def test_every_kind_has_rules(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(with_policy(job, *RULES, maxRestartsPerReplica=2)) == ""


def test_mxjobs_have_rules(validation_error: Callable[[Job], str], jobs: dict[str, Job]) -> None:
    for name in ("fioravanzo", "kubeflow-list", "kubeflow-map"):
        assert validation_error(with_policy(jobs[name], *RULES)) == "", name


def test_the_most_rules(validation_error: Callable[[Job], str]) -> None:
    assert validation_error(with_policy(jaxjob(2), *RULES * 4)) == ""


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"action": "Count"}, "a rule of podFailurePolicy has exactly one of onExitCodes, onTerminationReasons and"),
        (
            {"action": "Count", "onExitCodes": ON_CODES, "onPodConditions": [{"type": "x"}]},
            "a rule of podFailurePolicy has exactly one of onExitCodes, onTerminationReasons and",
        ),
        ({"onExitCodes": ON_CODES}, "rules[0].action: Required value"),
        ({"action": "FailIndex", "onExitCodes": ON_CODES}, 'supported values: \\"FailJob\\", \\"Restart\\"'),
        ({"action": "Count", "onExitCodes": {**ON_CODES, "operator": "Is"}}, "onExitCodes.operator: Unsupported value"),
        ({"action": "Count", "onExitCodes": {**ON_CODES, "values": []}}, "should have at least 1 items"),
        ({"action": "Count", "onExitCodes": {**ON_CODES, "values": [0]}}, "remove 0 from values"),
        ({"action": "Count", "onExitCodes": {**ON_CODES, "values": [256]}}, "less than or equal to 255"),
        ({"action": "Count", "onExitCodes": {**ON_CODES, "values": [3, 3]}}, "values[1]: Duplicate value"),
        ({"action": "Count", "onExitCodes": {**ON_CODES, "container": "x"}}, "unknown field"),
        ({"action": "Count", "onPodConditions": []}, "should have at least 1 items"),
        ({"action": "Count", "onPodConditions": [{"status": "True"}]}, "onPodConditions[0].type: Required value"),
        ({"action": "Count", "onPodConditions": [{"type": "x", "status": "true"}]}, "status: Unsupported value"),
    ],
)
def test_a_bad_rule(validation_error: Callable[[Job], str], rule: Job, message: str) -> None:
    assert message in validation_error(with_policy(jaxjob(2), rule))


@pytest.mark.parametrize(
    ("job", "message"),
    [
        (with_policy(jaxjob(2), *RULES * 5), "must have at most 20 items"),
        (with_policy(jaxjob(2), *RULES, restart="Always"), "use OnFailure or ExitCode"),
        (with_policy(jaxjob(2), *RULES, restartScope="Job"), "use the action RestartJob, or restartScope Replica"),
        (
            with_policy(jaxjob(2), *RULES[:4], restartScope="Job", maxRestartsPerReplica=1),
            "use backoffLimit, or restartScope Replica",
        ),
        (with_policy(jaxjob(2), *RULES, maxRestartsPerReplica=-1), "greater than or equal to 0"),
    ],
)
def test_a_bad_policy(validation_error: Callable[[Job], str], job: Job, message: str) -> None:
    assert message in validation_error(job)
