"""What the fuzz run accepts as an answer, and what it reports."""

from __future__ import annotations

from typing import Any

import pytest
from devtools.fuzz.judge import Judgement, Outcome, fields_of, ignored, judge, levels, names_a_field, unexpected


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


LINES = [
    ('2026-01-01 INFO    reconciled kind=MXJob name=f1 ok=True', ""),
    ('2026-01-01 WARNING object ignored: its fields are nested too deeply kind=MXJob', ""),
    ('2026-01-01 ERROR   reconcile failed name=f1 error="409: the object has been modified"', ""),
    ('2026-01-01 ERROR   reconcile failed name=f1 error="KeyError: spec"', "a failed reconcile"),
    ('2026-01-01 ERROR   watch failed kind=MXJob', "an error"),
    ('2026-01-01 WARNING run output outcome=crashed output="killed"', "a run that crashed or timed out"),
    ("Traceback (most recent call last):", "a traceback"),
    ('2026-01-01 INFO    x exception="ValueError"', "a traceback"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "wanted"), LINES)
def test_lines_that_must_never_occur(line: str, wanted: str) -> None:
    assert unexpected(line) == wanted
