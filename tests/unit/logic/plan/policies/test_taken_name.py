"""Whose object has the name that a job needs, and what to do about it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.taken_name import explain

JOB = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a", "uid": "mine"}}
OURS = "app.kubernetes.io/managed-by"


def reference(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "name": "a",
        "uid": "u",
        "controller": True,
        **changes,
    }


@pytest.mark.parametrize(
    ("metadata", "whose", "advice"),
    [
        pytest.param({}, ", and has no owner", "delete it, or rename the job", id="without an owner"),
        pytest.param(
            {"ownerReferences": [reference()]},
            ", but to PyTorchJob a",
            "delete it, or rename the job",
            id="another job's",
        ),
        pytest.param(
            {"ownerReferences": [reference(kind="ReplicaSet", name="web-1")]},
            ", but to ReplicaSet web-1",
            "delete it, or rename the job",
            id="a controller's",
        ),
        pytest.param(
            {"ownerReferences": [reference(controller=False)]},
            ", and has no owner",
            "delete it, or rename the job",
            id="not controlled",
        ),
        pytest.param(
            {"labels": {OURS: "dljob-operator", "dljob.operator/job-uid": "old"}},
            ": a deleted job has left it without an owner",
            "kubectl delete KINDS -l dljob.operator/job-uid=old",
            id="left by a job of this operator",
        ),
        pytest.param(
            {"labels": {"training.kubeflow.org/job-name": "a"}},
            ": a deleted job has left it without an owner",
            "kubectl delete KINDS -l training.kubeflow.org/job-name=a",
            id="left by a job of training-operator",
        ),
        pytest.param(
            {"labels": {"training.kubeflow.org/job-name": "b"}},
            ", and has no owner",
            "delete it, or rename the job",
            id="with the label of a job of another name",
        ),
        pytest.param(
            {"labels": {OURS: "dljob-operator", "dljob.operator/job-uid": "mine"}},
            ", and has no owner",
            "delete it, or rename the job",
            id="with this job's label: nothing is deleted by it",
        ),
        pytest.param(
            {"labels": {OURS: "dljob-operator", "dljob.operator/job-uid": "old"}, "ownerReferences": [reference()]},
            ", but to PyTorchJob a",
            "delete it, or rename the job",
            id="another job's, with its labels",
        ),
    ],
)
@pytest.mark.parametrize(
    ("kind", "version", "kinds"),
    [
        ("Pod", "v1", "pods,services"),
        ("Service", "v1", "pods,services"),
        ("Secret", "v1", "pods,secrets,services"),
        ("Job", "batch/v1", "jobs,pods,services"),
        ("PodGroup", "scheduling.volcano.sh/v1beta1", "podgroups,pods,services"),
    ],
)
def test_the_sentence(metadata: Any, whose: str, advice: str, kind: str, version: str, kinds: str) -> None:
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "a-0"}}
    text = f"{kind}/a-0: an object of that name exists and does not belong to this job{whose}; "
    expected = f"{text}the job waits until it is gone: {advice.replace('KINDS', kinds)}"
    assert explain(manifest, {"metadata": metadata}, JOB) == expected
