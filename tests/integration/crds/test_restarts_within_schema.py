"""Validation of runPolicy.restartsWithin by the CRDs, whose schema of it is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import kinds
from support.builders import caffe2job, jaxjob, tfjob

Job = dict[str, Any]
DAILY = {"count": 3, "seconds": 86400}


def limited(job: Job, within: Any, **policy: Any) -> Job:
    """As a user writes it."""
    given = {**job["spec"].get("runPolicy", {}), "restartsWithin": within, **policy}
    return {**job, "metadata": {"name": job["metadata"]["name"]}, "spec": {**job["spec"], "runPolicy": given}}


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(tfjob("kubeflow.org/v1", "tfReplicaSpecs", chief=1, worker=1), id="TFJob"),
        pytest.param(tfjob(master=1, worker=1), id="TfJob"),
        *(pytest.param(job, id=kind) for kind, (_, job) in kinds.plain_jobs(1).items()),
        pytest.param(caffe2job(2), id="Caffe2Job"),
    ],
)
def test_every_kind_has_it(validation_error: Callable[[Job], str], job: Job) -> None:
    assert validation_error(limited(job, {**DAILY, "action": "RestartJob"})) == ""
    assert validation_error(limited(job, DAILY)) == ""


@pytest.mark.parametrize(
    ("within", "message"),
    [
        ({"count": 3}, "restartsWithin.seconds: Required value"),
        ({"seconds": 3}, "restartsWithin.count: Required value"),
        ({**DAILY, "count": 101}, "less than or equal to 100"),
        ({**DAILY, "count": -1}, "greater than or equal to 0"),
        ({**DAILY, "seconds": 0}, "greater than or equal to 1"),
        ({**DAILY, "seconds": 31536001}, "less than or equal to 31536000"),
        ({**DAILY, "seconds": "1h"}, "must be of type integer"),
        ({**DAILY, "action": "Restart"}, 'supported values: \\"FailJob\\", \\"RestartJob\\"'),
        ({**DAILY, "minutes": 3}, "unknown field"),
    ],
)
def test_what_is_refused(validation_error: Callable[[Job], str], within: Any, message: str) -> None:
    assert message in validation_error(limited(jaxjob(2), within))


def test_a_job_that_restarts_as_a_whole_cannot_escalate(validation_error: Callable[[Job], str]) -> None:
    job = limited(jaxjob(2), {**DAILY, "action": "RestartJob"}, restartScope="Job")
    assert "use the action FailJob, or restartScope Replica" in validation_error(job)
    assert validation_error(limited(jaxjob(2), DAILY, restartScope="Job")) == ""
