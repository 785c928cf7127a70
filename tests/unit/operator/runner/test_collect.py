from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from dljob_operator.runner.collect import Collector, failure_message
from dljob_operator.runner.messages import TaskFailure


@dataclass
class _Stats:
    rescued: dict[str, int] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"msg": "no"}, "no"),
        ({"msg": "non-zero return code", "stderr": "disk full"}, "non-zero return code: disk full"),
        ({"msg": "see: disk full", "stderr": "disk full"}, "see: disk full"),
        ({"stderr": "only this"}, "only this"),
        ({"censored": "hidden by no_log"}, "hidden by no_log"),
        ({}, "the task failed without a message"),
        ({"msg": "x", "results": ["no mapping"]}, "x"),
    ],
)
def test_a_failure_says_its_cause(result: dict[str, Any], message: str) -> None:
    assert failure_message(result) == message


@pytest.mark.parametrize("says_so", [{"failed": True}, {"exception": "(traceback unavailable)"}], ids=["2.19", "2.21"])
def test_a_loop_names_its_failed_items(says_so: dict[str, Any]) -> None:
    """ansible-core 2.21 leaves `failed` out of the results that callbacks get; all versions report each failed item."""
    items = [{"item": 1, "msg": "fine"}, {"item": 2, "msg": "a", **says_so}, {"item": 3, "msg": "b", **says_so}]
    collector = Collector()
    for item in (*items[1:], items[2]):
        collector.item_failed("localhost", item)
    collector.item_failed("other", {"msg": "c", **says_so})
    result = {"msg": "One or more items failed", "results": items, **says_so}
    message = collector.message("localhost", result)
    assert message == "a; b"
    assert collector.failed("r : each", "x", result, message, ignored=False)
    assert collector.failures == [TaskFailure("r : each", "a; b")]
    assert collector.tasks[0]["res"] == {"msg": "a; b", "failed": True}
    assert collector.message("localhost", {"msg": "the next task"}) == "the next task"
    assert collector.message("other", result) == "c"


def test_a_host_that_cannot_be_reached_has_not_failed() -> None:
    collector = Collector()
    assert collector.failed("a", "x", {"unreachable": True}, "no route", ignored=False)
    (task,) = collector.tasks
    assert (task["event"], task["res"]) == ("runner_on_unreachable", {"msg": "no route"})


def test_a_failure_counts_unless_it_is_ignored_or_ansible_has_counted_a_rescue() -> None:
    collector, stats = Collector(), _Stats()
    collector.stats = stats
    assert not collector.failed("a", "x", {}, "ignored", ignored=True)
    stats.rescued["localhost"] = 1
    assert not collector.failed("b", "x", {}, "rescued", ignored=False)
    assert collector.failed("c", "x", {}, "in the rescue", ignored=False)
    assert collector.failures == [TaskFailure("c", "in the rescue")]


def test_reports_are_taken_from_results_and_from_the_items_of_loops() -> None:
    collector = Collector()
    collector.finished("a", "dljob.operator.reconcile", {"dljob": {"requeue_after": 5}})
    collector.finished("b", "x", {"results": [{"dljob": {"jobs": []}}, "text", {"dljob": "no mapping"}]})
    collector.failed("c", "x", {"dljob": {"jobs": [{"uid": "u"}]}}, "", ignored=False)
    assert collector.reports == [{"requeue_after": 5}, {"jobs": []}, {"jobs": [{"uid": "u"}]}]


def test_operator_sdks_requeue_is_understood_from_its_own_action_only() -> None:
    collector = Collector()
    collector.finished("a", "operator_sdk.util.requeue_after", {"period": "1m30s"})
    collector.finished("b", "some.other.task", {"period": "5s"})
    assert collector.reports == [{"requeue_after": 90.0}]
