from __future__ import annotations

import copy
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.leader import (
    LEASE,
    LeaderElector,
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


class Leases(KubeApi):
    """One Lease in memory. A request after `breaks` was set does what that says."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.breaks: Callable[[], None] | None = None
        self.versions = itertools.count(1)

    def with_timeout(self, seconds: float) -> KubeApi:
        return self

    def get(self, path: str, query: Any = None) -> dict[str, Any]:
        if self.breaks is not None:
            self.breaks()
        if self.lease is None:
            raise ApiError(404, "NotFound", "no Lease")
        return copy.deepcopy(self.lease)

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        body["metadata"]["resourceVersion"] = str(next(self.versions))
        self.lease = copy.deepcopy(body)
        return copy.deepcopy(self.lease)


SHORT = LeaseTimings(duration=0.9, deadline=0.5, period=0.1)


@pytest.fixture
def leading() -> Iterator[tuple[Leases, LeaderElector, threading.Event]]:
    """An elected leader, and the event of its loss."""
    api, lost = Leases(), threading.Event()
    elector = LeaderElector(api, "ns", "me", lost.set, SHORT)
    elector.start()
    assert elector.elected.wait(10)
    yield api, elector, lost
    api.breaks = None
    elector.stop()


def fail() -> None:
    raise ValueError("a response that is no JSON")


def test_a_leader_whose_request_hangs_gives_up_before_another_may_take_over(
    leading: tuple[Leases, LeaderElector, threading.Event],
) -> None:
    """With a request that hung for 20 s there were two leaders for 15 s."""
    api, _, lost = leading
    free = threading.Event()
    hung = threading.Event()

    def hang() -> None:
        hung.set()
        free.wait(30)

    api.breaks = hang
    assert hung.wait(10)
    began = time.monotonic()
    try:
        assert lost.wait(10)
        assert time.monotonic() - began < SHORT.duration
    finally:
        free.set()


def test_any_error_is_a_failed_attempt_and_the_deadline_holds(
    leading: tuple[Leases, LeaderElector, threading.Event],
) -> None:
    """Any error but two ended the thread, and this process believed for ever that it leads."""
    api, elector, lost = leading
    api.breaks = fail
    assert lost.wait(10)
    assert elector.problem() == "the thread leader deadline has ended"


def test_a_leader_whose_errors_pass_keeps_the_lease(leading: tuple[Leases, LeaderElector, threading.Event]) -> None:
    api, elector, lost = leading
    errors = iter([None, None])

    def twice() -> None:
        for _ in errors:
            fail()

    api.breaks = twice
    assert not lost.wait(2 * SHORT.deadline)
    assert (elector.problem(), api.lease and api.lease["spec"]["holderIdentity"]) == ("", "me")


def test_a_leader_that_another_replaced_gives_up_at_once(
    leading: tuple[Leases, LeaderElector, threading.Event],
) -> None:
    api, _, lost = leading
    assert api.lease is not None
    taken = copy.deepcopy(api.lease)
    taken["spec"]["holderIdentity"] = "other"
    taken["metadata"]["resourceVersion"] = "99"

    def replace() -> None:
        api.lease = taken

    api.breaks = replace
    assert lost.wait(10)


def test_a_stop_releases_the_lease_and_reports_no_loss() -> None:
    api, lost = Leases(), threading.Event()
    elector = LeaderElector(api, "ns", "me", lost.set, SHORT)
    elector.start()
    assert elector.elected.wait(10)
    elector.stop()
    assert api.lease is not None
    assert (api.lease["spec"]["holderIdentity"], lost.is_set(), elector.problem()) == ("", False, "")
