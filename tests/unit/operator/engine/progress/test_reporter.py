"""Who reports, by the cached objects of the pod and its job."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from dljob_operator.engine.progress.reporter import Reporter, has_ended, reporter_of, written_at

POD: dict[str, Any] = {
    "metadata": {
        "uid": "p",
        "name": "digits-worker-3",
        "namespace": "team",
        "labels": {"dljob.operator/replica-type": "worker", "dljob.operator/replica-index": "3"},
        "annotations": {"dljob.operator/reports-progress": "rank"},
    },
    "spec": {"nodeName": "n4"},
    "status": {"phase": "Running"},
}
JOB: dict[str, Any] = {"metadata": {"uid": "j", "name": "digits", "namespace": "team"}}


def changed(obj: dict[str, Any], *path: str, to: Any) -> dict[str, Any]:
    new = copy.deepcopy(obj)
    below = new
    for name in path[:-1]:
        below = below.setdefault(name, {})
    below[path[-1]] = to
    return new


def test_a_rank_and_the_job() -> None:
    rank = Reporter("j", "team", "TFJob", "digits", "digits-worker-3", "worker-3", "n4", is_first=False)
    assert reporter_of(POD, "TFJob", JOB) == rank
    first = changed(POD, "metadata", "annotations", to={"dljob.operator/reports-progress": "job"})
    found = reporter_of(first, "TFJob", JOB)
    assert found is not None
    assert found.is_first


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        (changed(POD, "metadata", "annotations", to=None), JOB),
        (changed(POD, "metadata", "annotations", to={"dljob.operator/reports-progress": "yes"}), JOB),
        (changed(POD, "status", "phase", to="Succeeded"), JOB),
        (changed(POD, "status", "phase", to="Failed"), JOB),
        (POD, changed(JOB, "status", "completionTime", to="2026-11-30T10:00:00Z")),
    ],
)
def test_what_reports_nothing(pod: dict[str, Any], job: dict[str, Any]) -> None:
    assert reporter_of(pod, "TFJob", job) is None


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, None),
        ({}, None),
        ([], None),
        ({"trainerStatus": "x"}, None),
        ({"trainerStatus": {"lastUpdatedTime": "soon"}}, None),
        ({"trainerStatus": {"lastUpdatedTime": 3}}, None),
        ({"trainerStatus": {"lastUpdatedTime": "0001-01-01T00:00:00+14:00"}}, None),
        (
            {"trainerStatus": {"lastUpdatedTime": "2026-11-30T10:00:00Z"}},
            datetime(2026, 11, 30, 10, tzinfo=UTC),
        ),
    ],
)
def test_the_time_of_the_last_report_in_a_status(status: Any, expected: datetime | None) -> None:
    assert written_at({**JOB, "status": status}) == expected
    assert not has_ended({**JOB, "status": status})
