"""The log names a missing permission and its RBAC rule; with that rule the operator continues."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from devtools.testbed.operator import OperatorError
from integration.rights.conftest import Start
from integration.rights.recorder import Right
from integration.rights.support import RBAC, Operator, example, mpijob_v1_example, mxjob_example

RULE = re.compile(r"add to the operator's role: (\{.*?\})")


def mxjob(operator: Operator) -> str:
    return operator.create(mxjob_example(), "job")


def mpijob(operator: Operator) -> str:
    return operator.create(example("kubeflow.org/v2beta1", "MPIJob"), "job")


def mpijob_v1(operator: Operator) -> str:
    return operator.create(mpijob_v1_example(), "job")


def mpijob_v1_with_workers(operator: Operator) -> str:
    """Whose launcher gets a Role that permits more than to read pods."""
    path = mpijob_v1(operator)
    operator.until(lambda: len(operator.owned("pods", path)) == 2, "it has workers")
    operator.become_ready(path)
    return path


def with_a_program(operator: Operator) -> str:
    """A job whose ConfigMap seems to be there already: whose is it?"""
    operator.recorder.lost = {Right("", "configmaps", "create")}
    container = {"name": "tensorflow", "image": "dljob/shell:1"}
    entries = [
        {"replicas": 1, "tfReplicaType": "MASTER", "template": {"spec": {"containers": [container]}}},
        {"replicas": 1, "tfReplicaType": "PS"},
    ]
    spec: dict[str, Any] = {"replicaSpecs": entries}
    return operator.create({"apiVersion": "tensorflow.org/v1alpha1", "kind": "TfJob", "spec": spec}, "job")


def add(operator: Operator, rule: str) -> None:
    """The rule as the log has it, into the role."""
    path = f"{RBAC}/clusterroles/{operator.own}"
    rules = operator.kube.get(path)["rules"]
    operator.patch(path, {"rules": [*rules, yaml.safe_load(rule)]})


MISSING: list[tuple[Right, Callable[[Operator], str]]] = [
    (Right("", "pods", "list"), mxjob),
    (Right("kubeflow.org", "mxjobs", "watch"), mxjob),
    (Right("", "pods", "create"), mxjob),
    (Right("", "services", "create"), mxjob),
    (Right("kubeflow.org", "mxjobs/status", "patch"), mxjob),
    (Right("", "configmaps", "get"), with_a_program),
    (Right("", "secrets", "create"), mpijob),
    (Right("", "serviceaccounts", "create"), mpijob_v1),
    (Right("", "pods/exec", "create"), mpijob_v1_with_workers),
]


@pytest.mark.parametrize(("right", "make"), MISSING, ids=[f"{right.verb} {right.resource}" for right, _ in MISSING])
def test_it_is_named_and_adding_the_logged_rule_fixes_it(
    start: Start, right: Right, make: Callable[[Operator], str]
) -> None:
    with start(right) as operator:
        path = make(operator)
        group, resource, verb = right
        rule = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        logged = operator.until(
            lambda: [one for one in RULE.findall(operator.log) if yaml.safe_load(one) == rule], f"{right} is logged"
        )
        cannot = f'cannot {verb} resource "{resource}" in API group "{group}"'
        assert cannot in operator.log or "RBAC permissions not currently held" in operator.log
        if verb in ("create", "get"):
            said = operator.status_since_creation(path, lambda status: RULE.search(status.get("reason", "")))
            assert yaml.safe_load(RULE.findall(said["reason"])[0]) == rule
        add(operator, logged[0])
        operator.until(lambda: operator.owned("pods", path) and operator.owned("services", path), "the job goes on")
        operator.until(lambda: operator.status(path).get("phase") == "Creating", "and its status is written")
        if verb in ("create", "get"):
            operator.until(lambda: not RULE.search(operator.status(path)["reason"]), "which no longer reports it")
        # without the time; what is tried again says when, which differs
        said = [line.split(" ", 2)[2] for line in operator.log.splitlines() if str(logged[0]) in line]
        lines = [line for line in said if "reconcile warning" in line or "cannot watch" in line]
        assert len(lines) == len(set(lines))


@pytest.mark.parametrize("right", [Right("", "nodes", "list"), Right("", "events", "create")], ids=str)
def test_what_can_be_done_without_is_named_and_done_without(start: Start, right: Right) -> None:
    with start(right) as operator:
        operator.process.wait_ready()
        rule = {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}

        def is_logged() -> bool:
            return rule in [yaml.safe_load(one) for one in RULE.findall(operator.log)]

        for number in range(10):  # the error of an Event is logged with the Events of a later job
            path = operator.create(mxjob_example(), f"job-{number}")
            operator.until(lambda path=path: operator.owned("pods", path), "the job has pods")  # type: ignore[misc]
            if is_logged():
                return
        operator.until(is_logged, f"{right} is logged")


def test_without_the_right_to_read_events_a_cause_is_missing_and_nothing_else(start: Start) -> None:
    right = Right("", "events", "list")
    with start(right) as operator:
        operator.process.wait_ready()
        job = mxjob_example()
        for replica in job["spec"]["mxReplicaSpecs"].values():
            spec = replica["template"]["spec"]
            spec["volumes"] = [{"name": "data", "secret": {"secretName": "nope"}}]
            spec["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        path = operator.create(job, "volume", is_schedulable=True)
        rule = {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]}
        operator.until(lambda: rule in [yaml.safe_load(x) for x in RULE.findall(operator.log)], "it is logged")
        assert operator.status(path)["reason"] == ""
        assert operator.status(path)["phase"] == "Creating"


def test_it_is_not_ready_before_it_may_see_pods(start: Start) -> None:
    with start(Right("", "pods", "list")) as operator, pytest.raises(OperatorError, match="not ready"):
        operator.until(lambda: 'cannot list resource "pods"' in operator.log, "the denial is logged")
        operator.process.wait_ready(0.5)


def test_a_pod_of_another_operator_needs_the_permission_of_the_migration_guide(start: Start) -> None:
    with start() as operator:
        operator.process.wait_ready()
        path = mxjob(operator)
        (pod, *_) = operator.until(lambda: operator.owned("pods", path), "the job has pods")
        name, label = pod["metadata"]["name"], "app.kubernetes.io/managed-by"
        pods = f"/api/v1/namespaces/{operator.watched}/pods"
        operator.patch(f"{pods}/{name}", {"metadata": {"labels": {label: None}}})
        rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}
        reason = operator.until(
            lambda: (found := operator.status(path).get("reason", "")) and RULE.search(found) and found, "it is missed"
        )
        assert yaml.safe_load(RULE.findall(reason)[0]) == rule
        assert f"Pod/{name}: it belongs to this job, but lacks the label {label}=" in reason
        add(operator, RULE.findall(reason)[0])
        operator.until(
            lambda: operator.get(f"{pods}/{name}")["metadata"]["labels"].get(label) == "dljob-operator",  # type: ignore[index]
            "the pod has the label",
        )
        operator.until(lambda: not RULE.search(operator.status(path)["reason"]), "and it is reported no more")
        assert operator.get(f"{pods}/{name}")["metadata"]["uid"] == pod["metadata"]["uid"]  # type: ignore[index]
