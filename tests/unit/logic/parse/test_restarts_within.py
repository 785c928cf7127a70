"""restartsWithin of a job: what is read, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.restarts_within import RestartsWithin
from support.builders import CAFFE2, MXNET, caffe2job, mxjob

PATH = "spec.runPolicy.restartsWithin"
DAILY = {"count": 3, "seconds": 86400}


def errors(given: Any, **policy: Any) -> list[str]:
    try:
        parse_job(mxjob().v1().workers(1).run_policy(restartsWithin=given, **policy).resource(), MXNET)
    except InvalidJob as e:
        return list(e.problems)
    return []


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (None, None),
        (DAILY, RestartsWithin(3, 86400, "FailJob")),
        ({**DAILY, "action": None}, RestartsWithin(3, 86400, "FailJob")),
        ({"count": 0, "seconds": 1, "action": "RestartJob"}, RestartsWithin(0, 1, "RestartJob")),
        ({"count": 100, "seconds": 31536000}, RestartsWithin(100, 31536000)),
    ],
)
def test_every_flavor_has_it(given: Any, read: RestartsWithin | None) -> None:
    for made in (mxjob().v1().workers(1), mxjob().v1alpha1()):
        assert made.run_policy(restartsWithin=given).job().run_policy.restarts_within == read
    resource = caffe2job(2, runPolicy={"restartsWithin": given})
    assert parse_job(resource, CAFFE2).run_policy.restarts_within == read


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, f"{PATH} must be a map with count and seconds"),
        ({"count": 3}, f"{PATH}.seconds is missing: give a number from 1 to 31536000"),
        ({"seconds": 3}, f"{PATH}.count is missing: give a number from 0 to 100"),
        ({**DAILY, "count": -1}, f"{PATH}.count is -1: it must be between 0 and 100"),
        ({**DAILY, "count": 101}, f"{PATH}.count is 101: it must be between 0 and 100"),
        ({**DAILY, "seconds": 0}, f"{PATH}.seconds is 0: it must be between 1 and 31536000"),
        ({**DAILY, "seconds": "1h"}, f"{PATH}.seconds"),
        ({**DAILY, "count": True}, f"{PATH}.count"),
        ({**DAILY, "action": "Restart"}, f"{PATH}.action: 'Restart' is none of FailJob, RestartJob"),
        ({**DAILY, "action": ["FailJob"]}, f"{PATH}.action: ['FailJob'] is none of FailJob, RestartJob"),
        ({**DAILY, "minutes": 3}, f"{PATH}.minutes is unknown: use count, seconds, action"),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    (found,) = errors(given)
    assert message in found


def test_a_job_that_restarts_as_a_whole_cannot_escalate() -> None:
    given = {**DAILY, "action": "RestartJob"}
    (found,) = errors(given, restartScope="Job")
    assert "use FailJob, or restartScope Replica" in found
    assert errors(DAILY, restartScope="Job") == errors(given) == []
