"""A job that is too large for one reconcile: progress, one Event, and the end when the job is deleted or suspended."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.api import budget, writer
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.api.congestion import CongestionWindow
from ansible_collections.dljob.operator.plugins.module_utils.api.context import Context
from ansible_collections.dljob.operator.plugins.module_utils.api.reader import Reader
from ansible_collections.dljob.operator.plugins.module_utils.api.reconcile import Outcome, reconcile
from ansible_collections.dljob.operator.plugins.module_utils.api.writer import FIRST_AT_ONCE
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import slices
from ansible_collections.dljob.operator.plugins.module_utils.shared.change_counter import ChangeCounter, ChangesSince
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.builders import MXNET, NOW, UID, mxjob
from support.recording_api import Api

TOTAL = 3 * budget.LEAST + 5


class Watched:
    """A job whose owned objects an engine watches; no reconcile has time for more than the least number of writes."""

    def __init__(
        self, refuses: dict[str, ApiError] | None = None, workers: int = TOTAL - 1, services: str = "per-job"
    ) -> None:
        self.job = mxjob("large").v1().workers(workers).resource()
        self.job["metadata"]["annotations"] = {"dljob.operator/services": services}
        self.api = Api(refuses)
        self.reasons: list[str] = []

    def reconcile(self, is_contended: bool = False, changes: ChangesSince | None = None) -> Outcome:
        owned = {"Pod": self.pods(), "Service": [made for made in self.api.made if made["kind"] == "Service"]}
        context = Context(
            self.api,
            Reader(self.api, {UID: owned}),
            clock=lambda: NOW,
            is_contended=is_contended,
            changes=changes,
        )
        outcome = reconcile(context, self.job, MXNET)
        if self.api.status is not None:
            self.job["status"] = self.api.status
        self.reasons.append((self.job.get("status") or {}).get("reason", ""))
        return outcome

    def pods(self) -> list[dict[str, Any]]:
        pods = [made for made in self.api.made if made["kind"] == "Pod"]
        for number, pod in enumerate(pods):
            pod["metadata"] |= {"uid": f"pod-{number}", "namespace": self.job["metadata"]["namespace"]}
            pod["status"] = {"phase": "Pending"}
        return pods


@pytest.fixture(autouse=True)
def _no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for times in ("OF_NEW_JOB", "OF_JOB_WITH_PODS"):
        monkeypatch.setattr(budget, times, budget.Times(0.0, 0.0, 0.0))


def changes(*changed: str, known: tuple[str, ...] = (UID,)) -> ChangesSince:
    """A user changed another job just before the engine took this one, and has changed these since."""
    counter = ChangeCounter.create(lambda: 0.0)
    counter.increment("before")
    since = ChangesSince(counter, counter.counts(known))
    for uid in changed:
        counter.increment(uid)
    return since


@pytest.mark.parametrize(
    ("pods", "is_contended", "changed", "in_window"),
    [
        (0, False, None, True),
        (0, False, [], False),
        (0, False, ["other"], True),
        (0, True, [], True),
        (1, False, None, False),
        (1, False, [], False),
        (1, False, ["other"], True),
        (1, True, [], True),
    ],
    ids=[f"{age}, {beside}" for age in ("new", "older") for beside in ("unknown", "alone", "no longer", "contended")],
)
def test_a_large_job_keeps_to_the_window_when_users_wait_for_others_or_it_is_new_and_nobody_knows(
    monkeypatch: pytest.MonkeyPatch, pods: int, is_contended: bool, changed: list[str] | None, in_window: bool
) -> None:
    calls: list[bool] = []

    def record(self: BoundedExecutor, items: Any, do: Any, at_once: Callable[[], float] = lambda: math.inf) -> None:
        if any(item["kind"] == "Pod" for item in items):
            calls.append(at_once() < FIRST_AT_ONCE)
        for item in items:
            do(item)

    watched = Watched()
    for _ in range(pods):
        watched.reconcile()
    monkeypatch.setattr(BoundedExecutor, "map", record)
    watched.reconcile(is_contended, None if changed is None else changes(*changed))
    assert calls[0] is in_window


@pytest.mark.parametrize("is_contended", [True, False])
def test_a_large_job_pauses_between_its_writes_while_users_wait_for_others(
    monkeypatch: pytest.MonkeyPatch, is_contended: bool
) -> None:
    monkeypatch.setattr(budget, "OF_NEW_JOB", budget.Times(600.0, 600.0, 600.0))
    pauses: list[float] = []
    monkeypatch.setattr(writer.time, "sleep", pauses.append)
    monkeypatch.setattr(CongestionWindow, "pause", 0.007)
    watched = Watched()
    watched.reconcile(is_contended, changes())
    assert len(watched.pods()) == TOTAL
    assert pauses == ([0.007] * TOTAL if is_contended else [])


def test_a_small_job_never_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer.time, "sleep", lambda seconds: pytest.fail("it pauses"))
    watched = Watched(workers=budget.LEAST - 1)
    watched.reconcile(True, changes("other"))
    assert len(watched.pods()) == budget.LEAST


def test_each_reconcile_writes_a_slice_and_reports_the_progress() -> None:
    watched = Watched()
    outcomes = [watched.reconcile() for _ in range(4)]
    assert [(outcome.continues, outcome.requeue_after) for outcome in outcomes[:3]] == [(True, 0.0)] * 3
    assert not outcomes[3].continues
    assert watched.reasons == [
        *(f"creating pods: {n * budget.LEAST} of {TOTAL} are created" for n in (1, 2, 3)),
        "",
    ]
    assert len(watched.pods()) == TOTAL


@pytest.mark.parametrize(
    ("since", "created"),
    [
        (lambda: changes(), TOTAL),
        (lambda: changes("another"), TOTAL),
        (lambda: changes(UID), budget.LEAST_BESIDE_OTHERS),
        (lambda: changes(known=()), budget.LEAST_BESIDE_OTHERS),
        (lambda: None, budget.LEAST),
    ],
    ids=["unchanged", "another is changed", "changed", "it may occupy the last worker", "unknown"],
)
def test_a_large_job_beside_others_writes_longer_if_it_continues_and_is_unchanged(
    monkeypatch: pytest.MonkeyPatch, since: Callable[[], ChangesSince | None], created: int
) -> None:
    monkeypatch.setattr(budget, "OF_JOB_WITH_PODS", budget.Times(0.0, 600.0, 600.0))
    watched = Watched()
    watched.reconcile()
    before = len(watched.pods())
    watched.reconcile(True, since())
    assert len(watched.pods()) == min(TOTAL, before + created)


@pytest.mark.parametrize("is_contended", [True, False])
def test_the_deletions_of_a_large_job_keep_to_the_window_without_pauses(
    monkeypatch: pytest.MonkeyPatch, is_contended: bool
) -> None:
    """What they free is what others wait for."""
    watched = Watched()
    for _ in range(4):
        watched.reconcile()
    watched.job["spec"].setdefault("runPolicy", {})["suspend"] = True
    in_window: list[bool] = []
    monkeypatch.setattr(
        BoundedExecutor,
        "map",
        lambda self, items, do, at_once: in_window.append(bool(items) and at_once() < FIRST_AT_ONCE),
    )
    monkeypatch.setattr(writer.time, "sleep", lambda seconds: pytest.fail("it pauses"))
    watched.reconcile(is_contended, changes())
    assert in_window == [False, is_contended]


def test_one_event_reports_the_creation() -> None:
    watched = Watched()
    for _ in range(5):
        watched.reconcile()
    (event,) = [text for text in watched.api.events() if "SuccessfulCreate" in text or "Created " in text]
    assert f"Created {TOTAL} of {TOTAL} pods" in event


def test_a_refusal_is_no_progress() -> None:
    watched = Watched({"Pod": ApiError(403, "Forbidden", "exceeded quota: q")})
    outcome = watched.reconcile()
    assert not outcome.continues
    assert outcome.requeue_after == 5.0
    assert "exceeded quota" in watched.reasons[0]


def test_a_job_that_is_suspended_meanwhile_gets_no_further_pod() -> None:
    watched = Watched()
    watched.reconcile()
    watched.job["spec"].setdefault("runPolicy", {})["suspend"] = True
    watched.reconcile()
    assert len(watched.pods()) == budget.LEAST


def test_without_an_engine_one_reconcile_writes_everything() -> None:
    watched = Watched()
    context = Context(watched.api, Reader(watched.api), clock=lambda: NOW)
    assert not reconcile(context, watched.job, MXNET).continues
    assert len(watched.pods()) == TOTAL


def test_the_services_of_replicas_are_created_with_their_pods_within_the_budget() -> None:
    watched = Watched(services="per-replica")
    outcomes = []
    for _ in range(12):
        outcomes.append(watched.reconcile())
        services = {made["metadata"]["name"] for made in watched.api.made if made["kind"] == "Service"}
        assert {pod["metadata"]["name"] for pod in watched.pods()} <= services
        if len(outcomes) == 1:
            assert len(watched.pods()) + len(services) == budget.LEAST + slices.FREE_SERVICES
        if not outcomes[-1].continues:
            break
    assert (len(watched.pods()), len(services)) == (TOTAL, TOTAL + 1)
    assert len(outcomes) > 4


def test_a_quota_of_services_delays_no_pod() -> None:
    denied = ApiError(403, "Forbidden", "exceeded quota: count/services")
    watched = Watched(refuses={"Service": denied}, services="per-replica")
    for _ in range(12):
        watched.reconcile()
    assert len(watched.pods()) == TOTAL
    assert watched.reasons[-1].startswith("Service/")
