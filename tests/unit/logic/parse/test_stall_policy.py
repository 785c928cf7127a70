"""stallPolicy of a job: what is read, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.stall_policy import StallPolicy
from support.builders import CAFFE2, MXNET, caffe2job, mxjob

PATH = "spec.runPolicy.stallPolicy"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (None, None),
        ({"noProgressSeconds": 300}, StallPolicy(None, 300, "Event")),
        ({"startSeconds": 30, "action": None}, StallPolicy(30, None, "Event")),
        (
            {"startSeconds": 600, "noProgressSeconds": 31536000, "action": "RestartJob"},
            StallPolicy(600, 31536000, "RestartJob"),
        ),
        ({"startSeconds": None, "noProgressSeconds": 30, "action": "FailJob"}, StallPolicy(None, 30, "FailJob")),
    ],
)
def test_every_flavor_has_it(given: Any, read: StallPolicy | None) -> None:
    for made in (mxjob().v1().workers(1), mxjob().v1alpha1()):
        assert made.run_policy(stallPolicy=given).job().run_policy.stall_policy == read
    resource = caffe2job(2, runPolicy={"stallPolicy": given})
    assert parse_job(resource, CAFFE2).run_policy.stall_policy == read


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (300, f"{PATH} must be a map with startSeconds or noProgressSeconds"),
        ({}, f"{PATH} needs a time: add startSeconds or noProgressSeconds"),
        ({"action": "FailJob"}, f"{PATH} needs a time: add startSeconds or noProgressSeconds"),
        ({"noProgressSeconds": 29}, f"{PATH}.noProgressSeconds is 29: it must be between 30 and 31536000"),
        ({"startSeconds": 31536001}, f"{PATH}.startSeconds is 31536001: it must be between 30 and 31536000"),
        ({"noProgressSeconds": "5m"}, f"{PATH}.noProgressSeconds must be a whole number, not '5m'"),
        ({"noProgressSeconds": True}, f"{PATH}.noProgressSeconds must be a whole number, not True"),
        ({"noProgressSeconds": 60, "action": "Restart"}, f"{PATH}.action: 'Restart' is none of Event, RestartJob"),
        ({"noProgressSeconds": 60, "minutes": 5}, f"{PATH}.minutes is unknown"),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        parse_job(mxjob().v1().workers(1).run_policy(stallPolicy=given).resource(), MXNET)
    (found,) = refused.value.problems
    assert message in found


@pytest.mark.parametrize(("progress", "is_refused"), [("None", True), ("Rank0", False), ("AllRanks", False)])
def test_it_needs_reports(progress: str, is_refused: bool) -> None:
    made = mxjob().v1().workers(1).run_policy(stallPolicy={"noProgressSeconds": 60}, progress=progress)
    try:
        parse_job(made.resource(), MXNET)
        problems = []
    except InvalidJob as refused:
        problems = list(refused.problems)
    assert ["that spec.runPolicy.progress None forbids" in one for one in problems] == [True] * is_refused
