"""What the fuzz run accepts as an answer, and what it reports."""

from __future__ import annotations

from typing import Any

import pytest
from devtools.lab.fuzz.judge import Judgement, Outcome, fields_of, ignored, judge, levels, names_a_field


def failed(reason: str) -> dict[str, Any]:
    return {"status": {"state": "Failed", "reason": f"{reason}: spec.x", "failure": {"reason": reason}}}


def deep(count: int) -> Any:
    value: Any = {}
    for _ in range(count - 1):
        value = [value]
    return value


ANSWERS: list[tuple[dict[str, Any] | None, list[str], Judgement]] = [
    (None, [], Judgement(Outcome.GONE)),
    ({}, [], Judgement(Outcome.PENDING)),
    ({"status": {}}, [], Judgement(Outcome.PENDING)),
    ({}, ["the object is too large"], Judgement(Outcome.REFUSED, "the object is too large")),
    ({"status": {"state": "Running"}}, [], Judgement(Outcome.STATUS)),
    (failed("FailedValidation"), [], Judgement(Outcome.REFUSED, "FailedValidation: spec.x")),
    (failed("RefusedByKubernetes"), [], Judgement(Outcome.REFUSED, "RefusedByKubernetes: spec.x")),
    (failed("DeadlineExceeded"), [], Judgement(Outcome.STATUS, "DeadlineExceeded: spec.x")),
    ({"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}}, [], Judgement(Outcome.IGNORED)),
    ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, [], Judgement(Outcome.IGNORED)),
]


@pytest.mark.parametrize(("job", "warnings", "wanted"), ANSWERS)
def test_the_answer_to_a_job(job: dict[str, Any] | None, warnings: list[str], wanted: Judgement) -> None:
    assert judge(job, warnings) == wanted


@pytest.mark.parametrize(("count", "wanted"), [(100, False), (101, True), (5000, True)])
def test_an_object_of_more_levels_than_the_operator_reads_is_ignored(count: int, wanted: bool) -> None:
    job = {"spec": deep(count - 1)}
    assert levels(job) == count
    assert ignored(job) is wanted


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        ("spec.mxReplicaSpecs is missing", True),
        ("metadata.name is 3 characters too long", True),
        ("volumeMounts[0].name: Not found", True),
        ("it does not work", False),
        ("", False),
    ],
)
def test_a_refusal_names_a_field(reason: str, wanted: bool) -> None:
    manifest = {"spec": {"mxReplicaSpecs": {}, "containers": [{"volumeMounts": []}]}}
    assert names_a_field(reason, fields_of(manifest)) is wanted
