"""Objects of a job that another operator has created: what this operator adds to them, and the Event on it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.observe import adoption
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from support.builders import MXNET, manifest_of, mxjob

MANAGED_BY, JOB_UID = "app.kubernetes.io/managed-by", "dljob.operator/job-uid"
OURS = {MANAGED_BY: "dljob-operator", JOB_UID: "1"}


def test_the_marks_are_the_operators_labels_and_annotations_and_not_those_of_the_template() -> None:
    annotations = {"dljob.operator/spec-hash": "4f", "dljob.operator/lifetime": "job", "of-the-template": "yes"}
    labels = {
        **OURS,
        "dljob.operator/replica-type": "worker",
        "dljob.operator/replica-index": "2",
        "dljob.operator/attempt": "1",
    }
    found = adoption.marks({"name": "a", "labels": {**labels, "app": "digits"}, "annotations": annotations})
    annotations.pop("of-the-template")
    assert found == {"labels": labels, "annotations": annotations}


@pytest.mark.parametrize("metadata", [{}, {"labels": None, "annotations": None}])
def test_an_object_without_labels_has_no_marks(metadata: dict[str, Any]) -> None:
    assert adoption.marks(metadata) == {"labels": {}, "annotations": {}}


def test_a_pod_with_the_marks_is_a_replica() -> None:
    """What the plan reads of a pod is among the marks; the spec stays that of the other operator."""
    job = parse_job(mxjob().v1().workers(3).resource(), MXNET)
    intended = manifest_of(job, "worker", 2, attempt=1)
    marks = adoption.marks(intended["metadata"])
    assert adoption.missing_labels(marks, job.uid) == []
    assert {name.partition("/")[2] for name in marks["labels"]} >= {"replica-type", "replica-index", "attempt"}
    assert set(marks["annotations"]) == {"dljob.operator/spec-hash"}


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        (OURS, []),
        ({**OURS, "app": "digits"}, []),
        ({MANAGED_BY: "dljob-operator"}, [f"{JOB_UID}=1"]),
        ({JOB_UID: "1", MANAGED_BY: "Helm"}, [f"{MANAGED_BY}=dljob-operator"]),
        ({**OURS, JOB_UID: "2"}, [f"{JOB_UID}=1"]),
        (None, [f"{MANAGED_BY}=dljob-operator", f"{JOB_UID}=1"]),
    ],
)
def test_the_labels_that_an_object_lacks(labels: dict[str, str] | None, missing: list[str]) -> None:
    assert adoption.missing_labels({"labels": labels}, "1") == missing


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (1, "1 objects of another operator: Pod/0"),
        (5, "5 objects of another operator: Pod/0, Pod/1, Pod/2, Pod/3, Pod/4"),
        (6, "6 objects of another operator: Pod/0, Pod/1, Pod/2, Pod/3, Pod/4, ..."),
    ],
)
def test_the_event_names_at_most_five_of_them_in_order(count: int, shown: str) -> None:
    adopted = [f"Pod/{number}" for number in reversed(range(count))]
    assert adoption.event(adopted) == EventNote("Normal", "Adopted", f"Adopted {shown}")


@pytest.mark.parametrize("scope", ["per-job", "per-replica"])
def test_the_pods_of_a_job_with_one_service_a_replica_are_known_as_such(scope: str) -> None:
    job = dataclasses.replace(mxjob().v1().job(), services=scope)
    found = adoption.marks(manifest_of(job, "scheduler")["metadata"])["annotations"].get("dljob.operator/services")
    assert found == (scope if scope == "per-replica" else None)
