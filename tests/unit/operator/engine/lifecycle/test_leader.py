from __future__ import annotations

import contextlib
import copy
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from support.clock import Clock
from support.polling import until

from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.engine.lifecycle import leader as module
from dljob_operator.engine.lifecycle.leader import (
    LEASE,
    LeaderElector,
    LeaseAction,
    LeaseName,
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
    ("timings", "error"),
    [
        (LeaseTimings(), ""),
        (LeaseTimings(15, 10, 2), ""),
        (LeaseTimings(1, 0.5, 0.1), ""),
        (LeaseTimings(0.0, 4, 1), "--leader-elect-lease-duration must be whole seconds, at least 1s"),
        (LeaseTimings(6.5, 4, 1), "--leader-elect-lease-duration must be whole seconds, at least 1s"),
        (LeaseTimings(6, 6, 1), "--leader-elect-renew-deadline must be less than --leader-elect-lease-duration"),
        (LeaseTimings(6, 4, 4), "--leader-elect-retry-period must be more than 0s and less than"),
        (LeaseTimings(6, 4, 0), "--leader-elect-retry-period must be more than 0s and less than"),
    ],
)
def test_a_leader_must_give_up_before_another_may_begin(timings: LeaseTimings, error: str) -> None:
    with pytest.raises(ValueError, match=error) if error else contextlib.nullcontext():
        timings.check()


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
    taken = build_lease(lease("other", "7", leaseTransitions=2), "me", LeaseName("ns"), LeaseTimings(), _NOW)
    assert (taken["apiVersion"], taken["kind"]) == ("coordination.k8s.io/v1", "Lease")
    assert taken["metadata"] == {"name": LEASE, "namespace": "ns", "resourceVersion": "7"}
    assert taken["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 6,
        "acquireTime": "2026-01-02T03:04:05.000000Z",
        "renewTime": "2026-01-02T03:04:05.000000Z",
        "leaseTransitions": 3,
    }
    renewed = build_lease(
        taken | {"metadata": {"resourceVersion": "8"}}, "me", LeaseName("ns"), LeaseTimings(), _NOW.replace(second=9)
    )
    assert renewed["spec"]["acquireTime"] == taken["spec"]["acquireTime"]
    assert renewed["spec"]["leaseTransitions"] == 3
    assert build_lease(None, "me", LeaseName("ns"), LeaseTimings(), _NOW)["spec"]["leaseTransitions"] == 0


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

    def with_own_connections(self) -> KubeApi:
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


SHORT = LeaseTimings(duration=6.0, deadline=1.5, period=0.1)


@pytest.fixture
def leading() -> Iterator[tuple[Leases, LeaderElector, threading.Event]]:
    """An elected leader, and the event of its loss."""
    api, lost = Leases(), threading.Event()
    elector = LeaderElector(api, LeaseName("ns"), "me", lost.set, SHORT)
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
    until(elector.problem, "the thread that reports the loss ends")
    assert elector.problem() == "the thread leader deadline has ended"


def test_a_leader_whose_errors_pass_keeps_the_lease(leading: tuple[Leases, LeaderElector, threading.Event]) -> None:
    api, elector, lost = leading
    attempts: list[float] = []

    def twice() -> None:
        attempts.append(time.monotonic())
        if len(attempts) <= 2:
            fail()

    api.breaks = twice
    until(lambda: attempts and attempts[-1] > attempts[0] + SHORT.deadline, "it renews the Lease again")
    assert not lost.is_set()
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
    elector = LeaderElector(api, LeaseName("ns"), "me", lost.set, SHORT)
    elector.start()
    assert elector.elected.wait(10)
    elector.stop()
    assert api.lease is not None
    assert (api.lease["spec"]["holderIdentity"], lost.is_set(), elector.problem()) == ("", False, "")


# One attempt at a time, without threads: what it writes, and whether this operator leads after it


class Guarded(Leases):
    """Refuses writes as the API server does, and records what was sent."""

    def __init__(self, found: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.lease = found
        self.versions = itertools.count(100)
        self.sent: list[tuple[str, str]] = []
        self.before_write: Callable[[], None] = lambda: None
        self.timeout = 0.0

    def with_timeout(self, seconds: float) -> KubeApi:
        self.timeout = seconds
        return self

    def get(self, path: str, query: Any = None) -> dict[str, Any]:
        self.sent.append(("GET", path))
        return super().get(path, query)

    def request(self, method: str, path: str, body: Any = None, **_: Any) -> dict[str, Any]:
        self.sent.append((method, path))
        self.before_write()
        if body["metadata"].get("resourceVersion") != (self.lease and self.lease["metadata"]["resourceVersion"]):
            raise ApiError(409, "Conflict", "the object has been modified")
        return super().request(method, path, body)

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else "nobody"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(1000.0)
    monkeypatch.setattr(module, "boottime", made)
    return made


LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
ONE = f"{LEASES}/{LEASE}"


def candidate(api: Leases, timings: LeaseTimings | None = None) -> LeaderElector:
    return LeaderElector(api, LeaseName("ns"), "me", lambda: None, timings)


@pytest.mark.parametrize(
    ("found", "sent", "holder"),
    [
        (None, [("GET", ONE), ("POST", LEASES)], "me"),
        (lease(""), [("GET", ONE), ("PUT", ONE)], "me"),
        (lease("me"), [("GET", ONE), ("PUT", ONE)], "me"),
        (lease("other"), [("GET", ONE)], "other"),
    ],
    ids=["none", "released", "ours", "another's"],
)
def test_the_first_attempt(
    clock: Clock, found: dict[str, Any] | None, sent: list[tuple[str, str]], holder: str
) -> None:
    api = Guarded(found)
    elector = candidate(api)
    assert not elector.leads()
    assert (elector.attempt() is None) is (holder == "me")
    assert (api.sent, api.holder) == (sent, holder)
    assert (elector.elected.is_set(), elector.leads()) == (holder == "me", holder == "me")


def test_a_leader_leads_until_the_deadline_after_the_last_attempt_that_renewed(clock: Clock) -> None:
    """It counts from the moment before the request: a standby may have seen the write when it was sent."""
    api = Guarded()
    elector = candidate(api)
    api.before_write = lambda: clock.pass_time(0.5)
    elector.attempt()
    clock.now = 1003.9
    assert elector.leads()
    elector.attempt()
    clock.now = 1007.8
    assert elector.leads()
    clock.now = 1007.9
    assert not elector.leads()


def fail_with(error: BaseException) -> Callable[[], None]:
    def fail_() -> None:
        raise error

    return fail_


@pytest.mark.parametrize(
    "error", [ApiError(500, "", "etcd"), ApiError(409, "Conflict", "changed"), ApiConnectionError("cut")], ids=str
)
@pytest.mark.parametrize("when", ["read", "write"])
def test_an_attempt_that_fails_renews_nothing(clock: Clock, error: Exception, when: str) -> None:
    api = Guarded()
    elector = candidate(api)
    elector.attempt()
    clock.now = 1003.0
    if when == "read":
        api.breaks = fail_with(error)
    else:
        api.before_write = fail_with(error)
    assert elector.attempt() == ("leader election failed", {"error": str(error)})
    assert elector.leads()
    clock.now = 1004.0
    assert not elector.leads()


def test_an_answer_with_another_holder_renews_nothing(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    elector = candidate(api := Guarded(lease("")))
    monkeypatch.setattr(api, "request", lambda *_: lease("other"))
    error = "the API server returned another holder than it was given"
    assert elector.attempt() == ("leader election failed", {"error": error})
    assert not elector.elected.is_set()


def test_of_two_that_take_it_at_the_same_moment_one_leads(clock: Clock) -> None:
    api = Guarded(lease(""))
    first, second = candidate(api), LeaderElector(api, LeaseName("ns"), "you", lambda: None)

    def other_is_first() -> None:
        api.before_write = lambda: None
        second.attempt()

    api.before_write = other_is_first
    assert first.attempt() is not None
    assert (first.leads(), second.leads(), api.holder) == (False, True, "you")


def test_a_standby_takes_a_lease_that_has_not_changed_for_its_duration(clock: Clock) -> None:
    api = Guarded(lease("other", leaseDurationSeconds=20))
    elector = candidate(api)
    for moment, version, holder in [
        (1000.0, "1", "other"),
        (1019.9, "1", "other"),
        (1020.0, "2", "other"),  # it was renewed
        (1039.9, "2", "other"),
        (1040.0, "2", "me"),
    ]:
        clock.now = moment
        assert api.lease is not None
        api.lease["metadata"]["resourceVersion"] = version
        standing = elector.attempt()
        assert api.holder == holder
        assert standing == (("standing by", {"leader": "other"}) if holder == "other" else None)
    assert elector.leads()


def test_a_slow_answer_does_not_shorten_the_wait(clock: Clock) -> None:
    """The holder may have renewed the Lease at any time until the response."""
    api = Guarded(lease("other"))
    elector = candidate(api)
    api.breaks = lambda: clock.pass_time(2.0)
    elector.attempt()
    assert clock.now == 1002.0
    api.breaks = None
    clock.now = 1007.9
    elector.attempt()
    assert api.holder == "other"
    clock.now = 1008.0
    elector.attempt()
    assert api.holder == "me"


def test_a_leader_that_was_replaced_or_has_expired_never_leads_again(clock: Clock) -> None:
    api = Guarded()
    elector = candidate(api)
    elector.attempt()
    mine = api.lease
    api.lease = lease("other", "200")
    clock.now = 1001.0
    assert elector.attempt() == ("standing by", {"leader": "other"})
    assert not elector.leads()
    api.lease = mine
    for moment in (1001.5, 1100.0):
        clock.now, api.sent = moment, []
        assert elector.attempt() == ("leader election ended", {})
        assert (api.sent, elector.leads()) == ([], False)


class Looked(threading.Event):
    """The event of an election that waits, before it is set, until the deadline's thread has looked at it again."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = threading.Semaphore(0)

    def is_set(self) -> bool:
        found = super().is_set()
        if threading.current_thread().name == "leader deadline":
            self.looks.release()
        return found

    def set(self) -> None:
        assert self.looks.acquire(timeout=10)
        super().set()


def test_the_deadline_counts_from_the_election_although_no_renewal_follows() -> None:
    """The deadline's thread may see the first renewal before the election, and waits for ever without another call."""
    api, lost = Guarded(), threading.Event()
    elector = LeaderElector(api, LeaseName("ns"), "me", lost.set, LeaseTimings(duration=0.3, deadline=0.1, period=0.1))
    elected = elector.elected = Looked()

    def first_attempt() -> None:
        assert elected.looks.acquire(timeout=10)
        api.breaks = fail

    api.breaks = first_attempt
    elector.start()
    assert lost.wait(10)
    api.breaks = None
    elector.stop()


def test_the_threads_of_a_standby_end_with_it() -> None:
    before = set(threading.enumerate())
    elector = candidate(Guarded(lease("other")), LeaseTimings(period=0.01))
    elector.start()
    assert len(set(threading.enumerate()) - before) == 2
    elector.stop()
    until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_has_ended_is_named() -> None:
    api = Guarded()
    api.breaks = fail_with(SystemExit())
    elector = candidate(api)
    assert elector.problem() == "", "it has not been started"
    elector.start()
    until(elector.problem)
    assert elector.problem() == "the thread leader election has ended"
    elector.stop()
    assert elector.problem() == ""


def test_the_election_and_the_loss_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dljob_operator")
    api, lost, free = Guarded(), threading.Event(), threading.Event()
    elector = LeaderElector(
        api, LeaseName("ns"), "me", lost.set, LeaseTimings(duration=0.3, deadline=0.05, period=0.05)
    )
    for _ in range(2):
        elector.attempt()
    api.breaks = lambda: None if free.wait(30) else fail()
    elector.start()
    assert lost.wait(10)
    said = [(record.getMessage(), record.__dict__["dljob_fields"]) for record in caplog.records]
    free.set()
    elector.stop()
    assert [one for one in said if one[0] != "leader election ended"] == [
        ("leadership gained", {"identity": "me"}),
        ("leadership lost", {"identity": "me", "not_renewed_seconds": 0.05}),
    ]


def test_a_request_leaves_time_for_another_before_the_deadline() -> None:
    api = Guarded()
    candidate(api)
    assert api.timeout == LeaseTimings().deadline / 2
    candidate(api, SHORT)
    assert api.timeout == SHORT.deadline / 2


def test_the_times_are_those_of_the_documentation() -> None:
    """docs/architecture.md: renewed every second, given up after four, taken after six."""
    assert LeaseTimings() == LeaseTimings(duration=6.0, deadline=4.0, period=1.0)


@pytest.mark.parametrize(
    ("silent", "message"), [(60.0, ""), (61.0, "the Lease ns/dljob-operator could not be read for 61 s: etcd")]
)
def test_a_standby_without_answers_for_a_minute_is_not_ready(clock: Clock, silent: float, message: str) -> None:
    api = Guarded(lease("other"))
    elector = candidate(api)
    assert elector.not_ready() == "the Lease ns/dljob-operator was not read yet"
    elector.attempt()
    assert elector.not_ready() == ""
    clock.now += silent
    api.breaks = fail_with(ApiError(500, "", "etcd"))
    elector.attempt()
    assert elector.not_ready() == message


@pytest.mark.parametrize(
    ("holder", "after"), [("me", ""), ("other", "other"), ("", "")], ids=["ours", "another's", "released"]
)
def test_an_end_releases_only_its_own_lease(clock: Clock, holder: str, after: str) -> None:
    api = Guarded(lease(holder, "5"))
    elector = candidate(api)
    elector.elected.set()
    elector.start()
    elector.stop()
    assert api.holder == after


def test_the_end_of_a_standby_leaves_the_lease_alone(clock: Clock) -> None:
    """Although the holder has its name."""
    api, failed = Guarded(lease("me", "5")), threading.Event()

    def away() -> None:
        failed.set()
        raise ApiConnectionError("cut")

    api.breaks = away
    elector = candidate(api, LeaseTimings(duration=60, deadline=50, period=30))
    elector.start()
    assert failed.wait(10)
    api.breaks, api.sent = None, []
    elector.stop()
    assert (api.sent, api.holder) == ([], "me")


def test_an_end_while_the_api_server_is_away_ends(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    for error in (ApiError(500, "", "etcd"), ApiConnectionError("cut")):
        api = Guarded(lease("me"))
        elector = candidate(api)
        elector.start()
        assert elector.elected.wait(10)
        api.breaks = fail_with(error)
        elector.stop()
    assert [str(record.__dict__["dljob_fields"]["error"]) for record in caplog.records] == ["etcd", "cut"]


class Hurried(LeaseTimings):
    """Records the pauses, and has none."""

    pauses: ClassVar[list[float]] = []

    def pause(self, has_failed: bool) -> float:
        self.pauses.append(super().pause(has_failed))
        return 0.0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_a_standby_waits_for_is_logged_once(
    clock: Clock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", "dljob_operator")
    monkeypatch.setattr(Hurried, "pauses", [])
    api, ended = Guarded(lease("other")), threading.Event()
    script = iter([None, None, None, fail_with(ValueError("nonsense")), fail_with(ValueError("nonsense")), None])

    def next_of_script() -> None:
        try:
            fails = next(script)
        except StopIteration:
            ended.set()
            raise SystemExit from None  # the thread ends here
        if fails is not None:
            fails()

    api.breaks = next_of_script
    elector = candidate(api, Hurried())
    elector.start()
    assert ended.wait(3), "it does not wait longer than it should"
    elector.stop()
    said = [(r.getMessage(), r.__dict__["dljob_fields"]) for r in caplog.records]
    standing = ("standing by", {"leader": "other"})
    assert said == [standing, ("leader election failed", {"error": "ValueError: nonsense"}), standing]
    assert Hurried.pauses == [1.0] * 6
