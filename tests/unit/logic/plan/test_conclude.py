"""From the result of applying a plan to what the reconcile reports."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.conclude import (
    CACHE_REQUEUE,
    PREDECESSOR,
    PREDECESSOR_REQUEUE,
    RETRY_REQUEUE,
    conclude,
    conclude_invalid,
    defer,
)
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies.initial_status import LATEST
from ansible_collections.dljob.operator.plugins.module_utils.shared.event import EventNote
from ansible_collections.dljob.operator.plugins.module_utils.values.apply_result import (
    ApplyResult,
    Conclusion,
    Resolution,
)
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Deletion, Plan
from support.builders import MXNET, NOW, mxjob, stamp

JOB = parse_job(mxjob("digits").v1().workers(1).resource(), MXNET)
AS_PLANNED = {"phase": "Creating"}
CREATED = EventNote("Normal", "SuccessfulCreatePod", "Created 2 of 2 pods")


def concluded(result: ApplyResult, planned: float | None = None, **resolution: Any) -> Conclusion:
    plan = Plan(status=AS_PLANNED, requeue_after=planned)
    return conclude(JOB, Resolution(plan, **resolution), result, NOW)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        pytest.param({}, None, id="all written"),
        pytest.param(
            {"waiting": ["Pod/a"]}, "waiting until Pod/a, which terminates, is gone", id="an own pod terminates"
        ),
        pytest.param(
            {"waiting": ["Pod/c", "Pod/a", "Pod/b"]},
            "waiting until Pod/a and 2 more, which terminate, are gone",
            id="some terminate",
        ),
        pytest.param({"waiting": ["Pod/a"], "optional_failures": ["Route: no"]}, "Route: no", id="not needed either"),
        pytest.param({"waiting": ["Pod/a"], "postponed": ["Pod/b: quota"]}, "Pod/b: quota", id="a quota, and waiting"),
        pytest.param({"waiting": ["Pod/a"], "predecessors": ["Pod/b"]}, PREDECESSOR, id="predecessor, and waiting"),
        pytest.param({"waiting": ["Pod/a"], "refused": ["Pod/b: bad"]}, "RefusedByKubernetes: Pod/b: bad", id="no use"),
        pytest.param({"optional_failures": ["Route: no"]}, "Route: no", id="not needed"),
        pytest.param({"postponed": ["Pod/a: quota"]}, "Pod/a: quota", id="for now"),
        pytest.param({"postponed": ["Pod/a: quota"], "optional_failures": ["Route: no"]}, "Pod/a: quota", id="both"),
        pytest.param({"predecessors": ["Pod/a", "Pod/b"]}, PREDECESSOR, id="predecessor"),
        pytest.param(
            {"predecessors": ["Secret/b", "Pod/a", "Role/a"]},
            f"{PREDECESSOR}; if it does not within a minute, it has missed that the job was deleted: delete Role/a, "
            "Secret/b",
            id="predecessor, and what only its user may have the right to delete",
        ),
        pytest.param(
            {"refused": ["Pod/a: bad"], "postponed": ["Pod/b: quota"]}, "RefusedByKubernetes: Pod/a: bad", id="failed"
        ),
    ],
)
def test_the_reason(result: dict[str, list[str]], reason: str | None) -> None:
    made = concluded(ApplyResult(**result))
    assert made.status and made.status.get("reason") == reason


@pytest.mark.parametrize(
    ("result", "planned", "expected"),
    [
        ({}, None, None),
        ({}, 0.0, 0.0),
        ({"waiting": ["Pod/a"]}, None, RETRY_REQUEUE),
        ({"postponed": ["Pod/a"]}, 1.0, 1.0),
        ({"postponed": ["Pod/a"]}, 0.0, RETRY_REQUEUE),
        ({"postponed": ["Pod/a"]}, 600.0, RETRY_REQUEUE),
        ({"predecessors": ["Pod/a"], "postponed": ["Pod/b"]}, 600.0, PREDECESSOR_REQUEUE),
        ({"optional_failures": ["Route"]}, 600.0, 600.0),
        ({"refused": ["Pod/a"]}, 600.0, 0.0),
    ],
)
def test_the_next_reconcile(result: dict[str, list[str]], planned: float | None, expected: float | None) -> None:
    assert concluded(ApplyResult(**result), planned).requeue_after == expected


@pytest.mark.parametrize(
    ("result", "planned", "is_partial", "expected"),
    [
        ({}, 0.0, False, (CACHE_REQUEUE, False)),
        ({}, 60.0, False, (60.0, False)),
        ({}, 0.0, True, (CACHE_REQUEUE, False)),
        ({"deleted": ["Pod/a"]}, 0.0, False, (0.0, False)),
        ({"deleted": ["Pod/a"]}, 0.0, True, (0.0, True)),
        ({"postponed": ["Pod/a: denied"]}, 0.0, False, (RETRY_REQUEUE, False)),
    ],
)
@pytest.mark.parametrize("is_valid", [True, False])
def test_pods_that_were_gone_are_not_deleted_again_before_the_cache_shows_it(
    result: dict[str, Any], planned: float, is_partial: bool, expected: tuple[float, bool], is_valid: bool
) -> None:
    plan = Plan(deletions=(Deletion("Pod", "a", "1"),), requeue_after=planned, is_partial=is_partial)
    if is_valid:
        made = conclude(JOB, Resolution(plan), ApplyResult(**result), NOW)
    else:
        made = conclude_invalid({}, ["x is wrong"], plan, ApplyResult(**result))
    assert (made.requeue_after, made.continues) == expected


@pytest.mark.parametrize(
    ("waited", "result", "expected"),
    [
        (None, {"postponed": ["Pod/a"], "denied": {"Pod"}}, 5.0),
        (20, {"postponed": ["Pod/a"], "denied": {"Pod"}}, 5.0),
        (100, {"postponed": ["Pod/a"], "denied": {"Pod"}}, 10.0),
        (595, {"postponed": ["Pod/a"], "denied": {"Pod"}}, 59.5),
        (6000, {"postponed": ["Pod/a"], "denied": {"Pod"}}, 60.0),
        (6000, {"postponed": ["Pod/a"]}, 5.0),
        (6000, {"waiting": ["Pod/a"]}, 5.0),
        (6000, {"predecessors": ["Pod/a"], "denied": {"Pod"}}, 1.0),
    ],
)
def test_what_a_quota_denies_is_tried_ever_more_rarely(
    waited: float | None, result: dict[str, Any], expected: float
) -> None:
    since = {} if waited is None else {"startTime": stamp(-waited)}
    job = mxjob("digits").v1().workers(1).status(phase="Creating", **since).job()
    assert conclude(job, Resolution(Plan()), ApplyResult(**result), NOW).requeue_after == expected


@pytest.mark.parametrize("result", [{"postponed": ["a"]}, {"optional_failures": ["a"]}])
def test_a_reason_leaves_the_rest_of_the_status_as_it_is(result: dict[str, Any]) -> None:
    status = {"phase": "Running", "state": "Running", "startTime": stamp(-9), "reason": ""}
    job = mxjob("digits").v1().workers(1).status(**status).job()
    unplanned = conclude(job, Resolution(Plan()), ApplyResult(**result), NOW)
    assert unplanned.status == {**status, "reason": "a"}
    planned = conclude(job, Resolution(Plan(status={**status, "phase": "CleanUp"})), ApplyResult(**result), NOW)
    assert planned.status == {**status, "phase": "CleanUp", "reason": "a"}


@pytest.mark.parametrize(("planned", "expected"), [(None, 30.0), (5.0, 5.0), (60.0, 30.0)])
def test_a_wrong_config_map_is_read_again_where_no_watch_event_follows(planned: float | None, expected: float) -> None:
    made = concluded(ApplyResult(), planned, problems=("ConfigMap a/b: wrong",), requeue_after=30.0)
    assert made.status and made.status["reason"] == "ConfigMap a/b: wrong"
    assert made.requeue_after == expected


def test_a_wrong_config_map_that_is_watched_needs_no_other_reconcile() -> None:
    assert concluded(ApplyResult(), problems=("ConfigMap a/b: wrong",)).requeue_after is None


@pytest.mark.parametrize(("before", "after"), [(None, LATEST), (0.2, 0.2), (60.0, LATEST)])
def test_a_deferred_status_is_due_within_a_second(before: float | None, after: float) -> None:
    planned = Conclusion(AS_PLANNED, (CREATED,), before, "message")
    assert defer(planned) == Conclusion(None, (), after, "message"), "the next one has the Event too"
    assert 0 < after <= 1


WAITING = "waiting until Pod/b, which terminates, is gone"


@pytest.mark.parametrize(
    ("planned", "names", "expected"),
    [
        pytest.param("", ["Pod/b"], WAITING, id="the same pod"),
        pytest.param("", ["Pod/a", "Pod/b"], WAITING, id="another one too"),
        pytest.param("", ["Pod/a"], "waiting until Pod/a, which terminates, is gone", id="it is gone"),
        pytest.param("", [], "", id="all are gone"),
        pytest.param("pod c: ErrImagePull", ["Pod/b"], "pod c: ErrImagePull", id="another reason"),
        pytest.param("creating pods: 1 of 2 are created", ["Pod/b"], WAITING, id="only progress"),
    ],
)
def test_the_reason_of_a_terminating_pod_is_written_once(planned: str, names: list[str], expected: str) -> None:
    """The plan has no such reason, so it would clear the present one."""
    status = {"phase": "Creating", "reason": WAITING}
    job = mxjob("digits").v1().workers(1).status(**status).job()
    resolution = Resolution(Plan(status={**status, "reason": planned}, events=(CREATED,)))
    made = conclude(job, resolution, ApplyResult(waiting=names), NOW)
    assert made.status == (None if expected == WAITING else {**status, "reason": expected})
    assert made.events == (() if names else (CREATED,)), "no Event of its own, and none on pods that do not exist"


def test_a_finished_job_reports_no_wait() -> None:
    status = {"phase": "Failed", "state": "Failed", "observedGeneration": 1}
    job = mxjob("digits").v1().workers(1).status(**status).job()
    assert conclude(job, Resolution(Plan()), ApplyResult(waiting=["Deployment/a"]), NOW).status is None


# --- what the log and the user read


@pytest.mark.parametrize(
    ("result", "message", "reason"),
    [
        ({"postponed": ["d", "c", "b", "a"]}, "d; c; b", "d; c; b"),
        ({"postponed": ["Pod/d: x", "Pod/c: x", "b", "a"]}, "Pod/d: x; Pod/c: x; b", "Pod/d: x; b; a"),
        ({"refused": ["d", "c", "b", "a"]}, "d; c; b; a", "RefusedByKubernetes: d; c; b"),
        ({"optional_failures": ["d", "c", "b", "a"]}, "", "d; c; b"),
        ({"postponed": ["a"], "predecessors": ["Pod/b"]}, "", f"a; {PREDECESSOR}"),
    ],
)
def test_at_most_three_problems_are_reported(result: dict[str, Any], message: str, reason: str) -> None:
    made = concluded(ApplyResult(**result))
    assert made.message == message
    assert made.status and made.status["reason"] == reason


@pytest.mark.parametrize(
    ("result", "event"),
    [
        ({"postponed": ["a"]}, "FailedCreatePod"),
        ({"optional_failures": ["a"]}, "FailedPage"),
        ({"refused": ["a"]}, "MXJobFailed"),
    ],
)
def test_the_event(result: dict[str, Any], event: str) -> None:
    assert [(note.type, note.reason) for note in concluded(ApplyResult(**result)).events] == [("Warning", event)]


NOTE = EventNote("Warning", "PodForceDeleted", "pod a: deleted")


def test_a_lost_node_is_the_reason_unless_something_keeps_the_pods_from_being_created() -> None:
    made = concluded(ApplyResult(), notes=(NOTE,))
    assert made.status and (made.status["reason"], made.events) == (NOTE.message, (NOTE,))
    made = concluded(ApplyResult(postponed=["quota"]), notes=(NOTE,))
    assert made.status and made.status["reason"] == "quota"
    assert [note.reason for note in made.events] == ["PodForceDeleted", "FailedCreatePod"]


def test_a_wrong_config_map_gives_way_to_what_kubernetes_refuses() -> None:
    made = concluded(ApplyResult(postponed=["quota"]), problems=("wrong",), requeue_after=30.0)
    assert made.status and (made.status["reason"], made.requeue_after) == ("quota", RETRY_REQUEUE)


# --- slices

OTHER = EventNote("Normal", "MXJobChanged", "The spec was changed")
SLICE = Plan(status=AS_PLANNED, events=(CREATED, OTHER), pods=({},), missing_pods=2, requeue_after=9.0)


def sliced(result: ApplyResult, **changes: Any) -> Conclusion:
    return conclude(JOB, Resolution(dataclasses.replace(SLICE, **changes)), result, NOW)


@pytest.mark.parametrize("replica", ["Pod/a", "Job/a"])
@pytest.mark.parametrize(("plan", "writes"), [(True, False), (False, True), (True, True)])
def test_a_cut_plan_or_cut_writes_continue_at_once(plan: bool, writes: bool, replica: str) -> None:
    made = sliced(ApplyResult(created=["Service/a", replica], is_partial=writes), is_partial=plan)
    assert (made.continues, made.requeue_after, made.events) == (True, 0.0, (OTHER,))
    assert made.status == {**AS_PLANNED, "reason": "creating pods: 1 of 2 are created"}


def test_a_whole_plan_does_not_continue() -> None:
    made = sliced(ApplyResult(created=["Pod/a", "Pod/b"]))
    assert (made.continues, made.requeue_after, made.events) == (False, 9.0, (CREATED, OTHER))
    assert made.status == AS_PLANNED


@pytest.mark.parametrize("result", [{"postponed": ["a"]}, {"waiting": ["Pod/a"]}, {"predecessors": ["Pod/a"]}])
def test_what_has_to_wait_does_not_continue_at_once(result: dict[str, list[str]]) -> None:
    made = sliced(ApplyResult(**result), is_partial=True)
    assert not made.continues
    assert made.requeue_after


@pytest.mark.parametrize(
    ("reason", "pods", "expected"),
    [
        ("", ({},), "creating pods: 0 of 2 are created"),
        ("creating pods: 7 of 9 are created", ({},), "creating pods: 0 of 2 are created"),
        ("a pod waits", ({},), "a pod waits"),
        ("", (), ""),
    ],
)
def test_the_progress_replaces_no_other_reason(reason: str, pods: tuple[Any, ...], expected: str) -> None:
    made = sliced(ApplyResult(), is_partial=True, status={"reason": reason}, pods=pods)
    assert made.status == {"reason": expected}


@pytest.mark.parametrize(("known", "written"), [(1, True), (0, False)])
def test_the_same_progress_is_not_written_again(known: int, written: bool) -> None:
    status = {"phase": "Creating", "reason": f"creating pods: {known} of 2 are created"}
    job = mxjob("digits").v1().workers(1).status(**status).job()
    plan = dataclasses.replace(SLICE, status=None, is_partial=True)
    made = conclude(job, Resolution(plan), ApplyResult(), NOW)
    assert made.status == ({**status, "reason": "creating pods: 0 of 2 are created"} if written else None)
