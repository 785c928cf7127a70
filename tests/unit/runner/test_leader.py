from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dljob_operator.engine.leader import (
    LEASE,
    LeaseAction,
    LeaseObservation,
    LeaseTimings,
    build_lease,
    decide_action,
    observe_lease,
)

_NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def lease(holder: str | None, version: str = "1", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"resourceVersion": version},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 6, **spec},
    }


@pytest.mark.parametrize(
    ("found", "seen_for", "expected"),
    [
        (None, 0.0, LeaseAction.CREATE),
        (lease("me"), 0.0, LeaseAction.RENEW),
        (lease("me"), 60.0, LeaseAction.RENEW),
        (lease(""), 0.0, LeaseAction.TAKE),
        (lease(None), 0.0, LeaseAction.TAKE),
        (lease("other"), 5.9, LeaseAction.WAIT),
        (lease("other"), 6.0, LeaseAction.TAKE),
        (lease("other", leaseDurationSeconds=30), 29.0, LeaseAction.WAIT),
        (lease("other", leaseDurationSeconds=None), 6.0, LeaseAction.TAKE),
    ],
)
def test_the_action_for_a_lease(found: dict[str, Any] | None, seen_for: float, expected: LeaseAction) -> None:
    assert decide_action(found, "me", LeaseObservation("1", 100.0), 100.0 + seen_for, 6.0) is expected


def test_a_lease_that_changes_is_alive_whatever_its_clock_says() -> None:
    first = observe_lease(lease("other", "1", renewTime="1999-01-01T00:00:00Z"), None, 100.0)
    assert observe_lease(lease("other", "1"), first, 105.0) == first
    assert observe_lease(lease("other", "2"), first, 105.0) == LeaseObservation("2", 105.0)


def test_taking_over_is_counted_and_dated_and_renewing_is_not() -> None:
    taken = build_lease(lease("other", "7", leaseTransitions=2), "me", "ns", LeaseTimings(), _NOW)
    assert taken["metadata"] == {"name": LEASE, "namespace": "ns", "resourceVersion": "7"}
    assert taken["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 6,
        "acquireTime": "2026-01-02T03:04:05.000000Z",
        "renewTime": "2026-01-02T03:04:05.000000Z",
        "leaseTransitions": 3,
    }
    renewed = build_lease(
        taken | {"metadata": {"resourceVersion": "8"}}, "me", "ns", LeaseTimings(), _NOW.replace(second=9)
    )
    assert renewed["spec"]["acquireTime"] == taken["spec"]["acquireTime"]
    assert renewed["spec"]["leaseTransitions"] == 3
    assert build_lease(None, "me", "ns", LeaseTimings(), _NOW)["spec"]["leaseTransitions"] == 0


def test_a_leader_gives_up_before_another_may_take_over() -> None:
    timings = LeaseTimings()
    assert timings.period < timings.deadline < timings.duration - timings.period / 2
