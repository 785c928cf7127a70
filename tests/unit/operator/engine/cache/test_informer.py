"""The informer beside an API server that hangs, falls silent, or rejects it. The others are tests/integration/engine."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from kubernetes import client
from support.polling import until
from support.scripted_server import Exchange, scripted
from support.served_kube_api import Served

from dljob_operator.engine.cache import informer as module
from dljob_operator.engine.cache import transforms, watch_health
from dljob_operator.engine.cache.informer import Informer, Pace, WatchSource
from dljob_operator.engine.cache.nesting import LIMIT, UNREADABLE
from dljob_operator.engine.cache.packing import Packed, Packing
from dljob_operator.engine.cache.predicates import Change
from dljob_operator.engine.cache.watch_health import LIST_AGAIN_AFTER
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi, UntrustedServer

Respond = Callable[[Exchange], None]


def connect(url: str) -> KubeApi:
    return KubeApi(client.ApiClient(client.Configuration(host=url)))


def pod(name: str, version: int) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "uid": name, "resourceVersion": str(version)}
    return {"metadata": metadata, "status": {"phase": "Pending"}}


def listed(*pods: dict[str, Any], version: int = 10) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version)}, "items": list(pods)}


class Watching:
    """An informer of pods and what it has reported."""

    def __init__(self, api: KubeApi, pace: Pace | None = None) -> None:
        self.names: list[str] = []
        self.changed = threading.Condition()
        source = WatchSource("pods", lambda: ApiResource("/api/v1", "pods"), transforms.owned({}))
        self.informer = Informer(api, source, self._on_change, pace=pace)

    def _on_change(self, change: Change) -> None:
        with self.changed:
            self.names.append(change.obj["metadata"]["name"])
            self.changed.notify_all()

    def saw(self, name: str) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: name in self.names, 10)


@contextlib.contextmanager
def watching(respond: Respond, pace: Pace | None = None) -> Iterator[tuple[Watching, list[Exchange]]]:
    with scripted(respond) as server:
        made = Watching(connect(server.url), pace)
        made.informer.start()
        try:
            yield made, server.requests
        finally:
            made.informer.stop()
            assert made.informer.join(5)


def api(list_: Respond, watch: Respond) -> Respond:
    return lambda exchange: (watch if exchange.watches else list_)(exchange)


def empty(exchange: Exchange) -> None:
    exchange.answer(listed())


def silent(exchange: Exchange) -> None:
    """A watch whose peer has vanished."""
    exchange.begin_stream()
    exchange.hang()


def test_a_watch_whose_peer_has_vanished_is_opened_again() -> None:
    watches = iter([silent])

    def second(exchange: Exchange) -> None:
        exchange.begin_stream()
        if exchange.query["resourceVersion"] == "10":  # it goes on where it was
            exchange.line({"type": "ADDED", "object": pod("second", 11)})
        exchange.hang()

    respond = api(lambda one: one.answer(listed(pod("first", 10))), lambda one: next(watches, second)(one))
    with watching(respond, Pace(quiet=0.2)) as (made, _):
        assert made.saw("second")
        assert made.names == ["first", "second"]


def test_a_page_is_packed_before_the_next_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pods of a large cluster as dictionaries would be twice the operator's memory at its start."""
    api = Served([page(pod("a", 1), token="b"), page(pod("b", 2))])
    read: list[tuple[str, int]] = []

    pack = Packing.pack

    def packs(self: Packing, obj: dict[str, Any]) -> Packed:
        read.append((obj["metadata"]["name"], len(api.listed)))
        return pack(self, obj)

    monkeypatch.setattr(Packing, "pack", packs)
    changes: list[Change] = []
    resource = ApiResource("/api/v1", "pods")
    source = WatchSource("pods", lambda: resource, transforms.owned({}))
    informer = Informer(api, source, changes.append)
    informer.start()
    assert informer.synced.wait(10)
    informer.stop()
    assert informer.join(10)
    assert read == [("a", 1), ("b", 2)]
    assert [change.obj["metadata"]["name"] for change in changes] == ["a", "b"]


@dataclass(frozen=True)
class Recorded(Pace):
    """Short pauses, which it records."""

    first_pause: float = 0.001
    longest_pause: float = 0.004
    pauses: list[float] = field(default_factory=list)

    def spread(self, pause: float) -> float:
        self.pauses.append(pause)
        return pause


def test_a_watch_that_was_long_enough_resets_the_pause() -> None:
    """The pauses once grew to 30 s over the life of the process, so that every interruption cost that much."""
    pace = Recorded(shortest_watch=0.05)

    def long_enough() -> Iterator[Any]:
        time.sleep(0.06)
        yield error(410)

    api = Served([page()], [CUT, CUT, CUT, long_enough(), CUT])
    with following(api, pace):
        assert api.opened.wait(10)
    assert pace.pauses[:5] == [0.001, 0.002, 0.004, 0.001, 0.002]


def test_watches_that_open_and_deliver_nothing_lead_to_a_new_list(caplog: pytest.LogCaptureFixture) -> None:
    """Each watch takes three quarters of the tolerated silence, by a clock that the API server sets."""
    now = itertools.count(step=LIST_AGAIN_AFTER * 0.75)
    opened = [next(now)]

    def watch(exchange: Exchange) -> None:
        opened.append(next(now))
        silent(exchange)

    lists = iter([listed(pod("first", 10)), listed(pod("first", 10), pod("missed", 12), version=12)])
    respond = api(lambda one: one.answer(next(lists, listed(version=13))), watch)
    pace = Pace(quiet=1.0, shortest_watch=0.5, clock=lambda: opened[-1])
    with watching(respond, pace) as (made, requests):
        assert made.saw("missed")
        assert sum(exchange.watches for exchange in requests) >= 3
    assert logged(caplog, "watch received nothing; listing again")[0]["silent_seconds"] == LIST_AGAIN_AFTER * 1.5


def test_a_watch_that_is_stuck_is_reported_and_not_before() -> None:
    times = [0.0]

    def one_event(exchange: Exchange) -> None:
        exchange.begin_stream()
        exchange.line({"type": "ADDED", "object": pod("first", 11)})
        exchange.hang()

    with watching(api(empty, one_event), Pace(clock=lambda: times[-1])) as (made, _):
        assert made.saw("first")
        times.append(watch_health.STALE_AFTER - 1)
        assert (made.informer.problem(), made.informer.not_ready()) == ("", "")
        times.append(watch_health.STALE_AFTER + 1)
        assert "the watch of pods is open but has received nothing" in made.informer.problem()


def test_readiness_waits_for_the_first_list_and_names_the_error() -> None:
    allowed = threading.Event()

    def list_(exchange: Exchange) -> None:
        if allowed.is_set():
            exchange.answer(listed())
        else:
            exchange.answer({"reason": "InternalError", "message": "etcd has no leader"}, 500)

    with watching(api(list_, silent)) as (made, _):
        until(lambda: "etcd" in made.informer.not_ready())
        assert made.informer.not_ready() == "the first list of pods is not complete: etcd has no leader"
        assert made.informer.problem() == ""
        allowed.set()
        assert made.informer.synced.wait(10)
        until(lambda: not made.informer.not_ready())
        assert made.informer.not_ready() == ""


def test_a_relist_that_fails_makes_it_unready_and_not_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_health, "UNREADY_AFTER", 0.0)
    lists: Iterator[Respond] = iter([empty])

    def locked(exchange: Exchange) -> None:
        exchange.answer({"message": "the database is locked"}, 500)

    def expired(exchange: Exchange) -> None:
        exchange.begin_stream()
        exchange.line({"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}})

    with watching(api(lambda one: next(lists, locked)(one), expired)) as (made, _):
        assert made.informer.synced.wait(10)
        until(lambda: "locked" in made.informer.not_ready())
        assert made.informer.not_ready().endswith("the database is locked")
        assert made.informer.problem() == ""


def test_rejected_credentials_are_reported_to_liveness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_health, "REJECTED_AFTER", 0.0)
    with watching(lambda exchange: exchange.answer({"message": "Unauthorized"}, 401)) as (made, _):
        until(lambda: made.informer.problem())
        assert made.informer.problem().startswith("the watch of pods has been rejected for")


# Requests


JOBS = ApiResource("/apis/example.com/v1", "jobs")


QUICK = Pace(first_pause=0.001, longest_pause=0.004)


class Followed:
    """An informer, with short pauses, and the words for what it has reported."""

    def __init__(self, api: Served, pace: Pace | None = None, **source: Any) -> None:
        self.words: list[str] = []
        given = {"what": "pods", "find": lambda: ApiResource("/api/v1", "pods"), "transform": transforms.owned({})}
        self.informer = Informer(api, WatchSource(**{**given, **source}), self._on_change, pace=pace or QUICK)

    def _on_change(self, change: Change) -> None:
        word = "new" if change.old is None else "gone" if change.new is None else "changed"
        self.words.append(f"{word} {change.obj['metadata']['name']}")

    def names(self) -> list[str]:
        return [one["metadata"]["name"] for one in self.informer.store.all()]


@contextlib.contextmanager
def following(api: Served, pace: Pace | None = None, **source: Any) -> Iterator[Followed]:
    made = Followed(api, pace, **source)
    made.informer.start()
    try:
        yield made
    finally:
        made.informer.stop()
        assert made.informer.join(10)


def event(kind: str, name: str, version: int) -> dict[str, Any]:
    return {"type": kind, "object": pod(name, version)}


def bookmark(version: int) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


def error(code: int) -> dict[str, Any]:
    return {"type": "ERROR", "object": {"code": code, "reason": "Some", "message": f"the error {code}"}}


GONE = ApiError(410, "Expired", "too old")
CUT = ApiConnectionError("cut")
OVERLOADED = ApiError(429, "TooManyRequests", "try again later")
STARTING = ApiError(429, "TooManyRequests", "storage is (re)initializing")


def logged(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    """The fields of the records with that message."""
    return [record.__dict__["dljob_fields"] for record in caplog.records if record.getMessage() == message]


def page(*pods: dict[str, Any], version: int = 10, token: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": token}, "items": list(pods)}


@pytest.mark.parametrize(
    ("watches", "words", "versions"),
    [
        ([[event("ADDED", "b", 11)]], ["new a", "new b"], ["10", "11"]),
        ([[event("MODIFIED", "a", 12)]], ["new a", "changed a"], ["10", "12"]),
        ([[event("DELETED", "a", 13)]], ["new a", "gone a"], ["10", "13"]),
        ([[bookmark(14)]], ["new a"], ["10", "14"]),
        ([[]], ["new a"], ["10", "10"]),
        ([CUT], ["new a"], ["10", "10"]),
        ([[event("ADDED", "b", 11), CUT]], ["new a", "new b"], ["10", "11"]),
        ([[event("ADDED", "b", 11)], OVERLOADED], ["new a", "new b"], ["10", "11", "11"]),
        ([[event("ADDED", "b", 11)], CUT, [bookmark(15)]], ["new a", "new b"], ["10", "11", "11", "15"]),
    ],
)
def test_an_interrupted_watch_continues_from_the_last_version(
    watches: list[Any], words: list[str], versions: list[str]
) -> None:
    api = Served([page(pod("a", 9))], watches)
    with following(api) as made:
        assert api.opened.wait(10)
        assert (made.words, [one["resourceVersion"] for one in api.watched]) == (words, versions)
        assert len(api.listed) == 1


@pytest.mark.parametrize(
    ("lists", "watches"),
    [
        ([page(pod("a", 9))], [[error(410)]]),
        ([page(pod("a", 9))], [GONE]),
        ([page(pod("a", 9))], [[event("MODIFIED", "a", 11), error(410)]]),
        ([page(pod("a", 9))], [[error(500)]]),
        ([page(pod("a", 9))], [[{"type": "ERROR", "object": {}}]]),
        ([page(pod("a", 9))], [[RecursionError()]]),
        ([page(pod("a", 9))], [[{"type": "ADDED"}]]),
    ],
    ids=["event 410", "410", "after an event", "event 500", "event without code", "too deep", "nonsense"],
)
def test_a_version_that_is_unusable_leads_to_a_new_list(lists: list[Any], watches: list[Any]) -> None:
    """What happened between is found by listing: the deletion of "a" was in no event."""
    api = Served([*lists, page(pod("b", 20), version=30)], watches)
    with following(api) as made:
        assert api.opened.wait(10)
        assert made.names() == ["b"]
        assert made.words[0] == "new a"
        assert made.words[-2:] == ["gone a", "new b"]
        assert [one["resourceVersion"] for one in api.watched] == ["10", "30"]


def test_an_expired_version_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """It is the rule after a long absence."""
    api = Served([page(token="second"), GONE, page()], [[error(410)], GONE])
    with following(api) as made:
        assert api.opened.wait(10)
        assert (len(api.listed), made.informer.not_ready()) == (5, "")
    assert "cannot watch" not in caplog.text
    assert "unexpectedly" not in caplog.text


def test_a_list_of_several_pages_is_complete_before_anything_is_reported() -> None:
    api = Served([page(pod("a", 1), version=10, token="second"), page(pod("b", 2), version=11)])
    with following(api, page_size=1) as made:
        assert api.opened.wait(10)
        assert made.words == ["new a", "new b"]
        assert [(one["limit"], one.get("continue")) for one in api.listed] == [(1, None), (1, "second")]
        assert [one["resourceVersion"] for one in api.watched] == ["11"]
        assert all("limit" not in one and "continue" not in one for one in api.watched)


@pytest.mark.parametrize("failure", [GONE, CUT, ApiError(500, "", "etcd")], ids=["expired", "cut", "error"])
def test_a_list_that_fails_after_its_first_page_begins_anew(failure: Exception) -> None:
    """Half a list would report the objects of the other half as deleted."""
    lists = [page(pod("a", 1), token="second"), failure, page(pod("a", 1), token="third"), page(pod("b", 2))]
    api = Served([page(pod("a", 1), pod("b", 2)), *lists], [[error(410)]])
    with following(api) as made:
        assert api.opened.wait(10)
        assert [one.get("continue") for one in api.listed] == [None, None, "second", None, "third"]
        assert made.words[:2] == ["new a", "new b"]
        assert not any(word.startswith("gone") for word in made.words)


def test_it_asks_for_what_it_was_told_to_watch(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dljob_operator")
    api = Served([page()])
    find = lambda: JOBS  # noqa: E731
    with following(api, find=find, namespace="team", selector="team=a", only="config") as made:
        assert api.opened.wait(10)
        assert made.informer.what == "pods in namespace team"
    assert logged(caplog, "watch synced") == [{"resource": "pods", "namespace": "team", "objects": 0}]
    assert set(api.paths) == {"/apis/example.com/v1/namespaces/team/jobs"}
    chosen = {"labelSelector": "team=a", "fieldSelector": "metadata.name=config"}
    assert api.listed == [{"limit": module.PAGE_SIZE, **chosen}]
    (watched,) = api.watched
    assert 240 <= watched.pop("timeoutSeconds") <= 300
    assert watched == {"resourceVersion": "10", "allowWatchBookmarks": "true", **chosen}


def test_without_a_restriction_it_asks_for_all() -> None:
    api = Served([page()])
    with following(api):
        assert api.opened.wait(10)
    assert api.listed == [{"limit": module.PAGE_SIZE}]
    assert set(api.paths) == {"/api/v1/pods"}


def test_an_optional_kind_that_is_forbidden_for_a_moment_stays_known() -> None:
    """An API server that starts refuses what it allows once it has read its roles."""
    api = Served([page(pod("a", 9)), ApiError(403, "Forbidden", "no")], [[error(410)]])
    with following(api, optional=True) as made:
        until(lambda: len(api.listed) > 5)
        assert (made.words, made.names(), made.informer.missing_now) == (["new a"], ["a"], False)


def test_an_optional_kind_that_rbac_forbids_is_empty_and_ready(caplog: pytest.LogCaptureFixture) -> None:
    denied = ApiError(403, "Forbidden", "nodes is forbidden")
    api = Served([page(pod("a", 9)), denied], [[error(410)]])
    pace = replace(QUICK, forbidden=0.01)
    with following(api, pace, optional=True, without="; labels are not checked") as made:
        until(lambda: made.informer.missing_now)
        until(lambda: len(api.listed) > 5)
        assert (made.words, made.names()) == (["new a", "gone a"], [])
        assert (made.informer.problem(), made.informer.not_ready()) == ("", "")
    (said,) = logged(caplog, "cannot watch")
    assert said == {"resource": "pods", "error": "nodes is forbidden; labels are not checked"}


@pytest.mark.parametrize(
    ("status", "optional"), [(403, False), (401, True), (500, True)], ids=["required", "token", "server"]
)
def test_an_error_that_may_pass_leaves_the_cache_as_it_is(status: int, optional: bool) -> None:
    """To take its objects for deleted would start all their jobs anew."""
    api = Served([page(pod("a", 9)), ApiError(status, "", "no")], [[error(410)]])
    with following(api, optional=optional) as made:
        until(lambda: len(api.listed) > 5)
        assert (made.words, made.names(), made.informer.missing_now) == (["new a"], ["a"], False)


def test_before_the_first_list_only_a_forbidden_optional_kind_counts_as_read() -> None:
    denied = Served([ApiError(403, "Forbidden", "no")])
    with following(denied) as made:
        until(lambda: len(denied.listed) > 3)
        assert (made.informer.has_synced.is_set(), made.informer.synced.is_set()) == (False, False)
        assert not made.informer.missing_now
    assert made.informer.has_synced.is_set(), "the caller that waits for it continues"
    with following(denied, optional=True) as made:
        assert made.informer.has_synced.wait(10)
        assert not made.informer.synced.is_set()


def test_a_kind_that_is_not_served_is_named_once_and_followed_once_it_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dljob_operator")
    found: list[ApiResource | None] = [None]
    asked = threading.Semaphore(0)

    def find() -> ApiResource | None:
        asked.release()
        return found[0]

    def times(count: int) -> None:
        for _ in range(count):
            assert asked.acquire(timeout=10)

    api = Served([page(pod("a", 9)), ApiError(404, "NotFound", "no such kind")], [[error(404)]])
    with following(api, find=find, missing="install it") as made:
        times(3)
        assert made.informer.has_synced.is_set()
        assert (made.informer.missing_now, made.informer.synced.is_set(), api.paths) == (True, False, [])
        assert [one["error"] for one in logged(caplog, "cannot watch")] == ["install it"]
        found[0] = JOBS
        until(lambda: made.words)
        assert made.informer.synced.wait(10)
        assert not made.informer.missing_now
        until(lambda: len(api.listed) > 2)
        found[0] = None
        until(lambda: made.informer.missing_now)
        assert (made.words, made.names(), made.informer.not_ready()) == (["new a", "gone a"], [], "")
        assert "no such kind" not in caplog.text
    with following(api, find=lambda: None):
        until(lambda: len(logged(caplog, "cannot watch")) > 2)
    assert logged(caplog, "cannot watch")[2] == {"resource": "pods", "error": "the API server has no pods"}


def test_the_errors_of_a_kind_that_is_no_longer_served_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_health, "UNREADY_AFTER", 0.0)
    found: list[ApiResource | None] = [JOBS]
    api = Served([page(), ApiError(500, "", "etcd")], [[error(410)]])
    with following(api, find=lambda: found[0]) as made:
        until(lambda: made.informer.not_ready().endswith("etcd"))
        found[0] = None
        until(lambda: made.informer.missing_now)
        until(lambda: not made.informer.not_ready())


def test_an_error_is_logged_once_and_again_after_it_has_passed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dljob_operator")
    api = Served([page()], [CUT, CUT, [], CUT, ApiConnectionError("another"), CUT])
    with following(api):
        assert api.opened.wait(10)
    found = [record.__dict__["dljob_fields"].get("error") or record.getMessage() for record in caplog.records]
    assert found == ["watch synced", "cut", "watch resumed", "cut", "another", "cut", "watch resumed"]


@pytest.mark.parametrize(
    ("failures", "levels"),
    [
        ([STARTING], ["INFO"]),
        ([STARTING] * 8, ["INFO", "WARNING"]),
        ([OVERLOADED], ["WARNING"]),
        ([ApiError(500, "", STARTING.message)], ["WARNING"]),
        ([STARTING, OVERLOADED, STARTING], ["INFO", "WARNING", "WARNING"]),
    ],
    ids=["new kind", "for long", "overload", "another status", "in turn"],
)
def test_a_kind_that_is_about_to_be_served_is_no_warning(
    failures: list[Any], levels: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Since Kubernetes 1.37 the API server answers so for a moment after a CRD has been created."""
    caplog.set_level("INFO", "dljob_operator")
    api = Served([*failures, page()])
    with following(api) as made:
        assert made.informer.synced.wait(10) and api.opened.wait(10)
    assert [one.levelname for one in caplog.records if one.getMessage() == "cannot watch"] == levels
    assert caplog.records[-1].getMessage() == "watch resumed"


def test_an_unexpected_error_is_reported_and_does_not_end_the_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watch_health, "UNREADY_AFTER", 0.0)
    api = Served([page(pod("a", 9)), ValueError("nonsense")], [[{"type": "ADDED"}]])
    with following(api) as made:
        until(lambda: "nonsense" in made.informer.not_ready())
        assert made.informer.not_ready().endswith("ValueError: nonsense")
        assert (made.informer.problem(), made.names()) == ("", ["a"])
    assert logged(caplog, "watch failed unexpectedly; restarting it")[0] == {"resource": "pods"}


@pytest.mark.parametrize(("failure", "is_rejected"), [(UntrustedServer("bad certificate"), True), (CUT, False)])
def test_only_a_certificate_that_is_not_trusted_is_worth_a_restart(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, is_rejected: bool
) -> None:
    monkeypatch.setattr(watch_health, "REJECTED_AFTER", 0.0)
    api = Served([failure])
    with following(api) as made:
        until(lambda: len(api.listed) > 3)
        assert made.informer.problem().startswith("the watch of pods has been rejected for") is is_rejected


def test_an_event_that_cannot_be_decoded_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    api = Served([page()], [[RecursionError()]])
    with following(api):
        assert api.opened.wait(10)
    (said,) = logged(caplog, "cannot watch")
    assert said["error"] == "an object is nested too deeply to be read; listing the others again"


def test_what_cannot_be_decoded_is_not_worth_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_health, "REJECTED_AFTER", 0.0)
    attempts: list[None] = []

    def find() -> ApiResource:
        attempts.append(None)
        raise RecursionError

    with following(Served([page()]), find=find) as made:
        until(lambda: len(attempts) > 3)
        assert made.informer.problem() == ""


def test_the_first_pause_is_short_and_no_busy_loop() -> None:
    assert 0 < Pace().first_pause <= 1


def test_a_pause_is_spread_so_that_informers_do_not_reconnect_at_the_same_time() -> None:
    spread = [Pace().spread(8.0) for _ in range(100)]
    assert 4.0 <= min(spread) < max(spread) <= 8.0


def test_watches_that_end_at_once_are_opened_after_ever_longer_pauses() -> None:
    """A broken proxy causes no busy loop."""
    pace = Recorded()
    api = Served([page()], [[] for _ in range(6)])
    began = time.monotonic()
    with following(api, pace):
        assert api.opened.wait(10)
    assert pace.pauses[:6] == [0.001, 0.002, 0.004, 0.004, 0.004, 0.004]
    assert time.monotonic() - began > sum(pace.pauses[:6])


def test_a_watch_that_was_long_enough_is_followed_by_the_next_without_a_pause() -> None:
    """Also without another search for the kind, which is a request."""
    searches: list[None] = []

    def find() -> ApiResource:
        searches.append(None)
        return JOBS

    api = Served([page()], [[event("ADDED", "a", 11)], [], CUT, []])
    with following(api, replace(QUICK, shortest_watch=0.0), find=find):
        assert api.opened.wait(10)
    assert len(api.watched) == 5
    assert len(searches) == 2, "only what was cut before it was open begins anew"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_has_ended_is_a_problem() -> None:
    def find() -> None:
        raise SystemExit

    made = Followed(Served([page()]), find=find)
    assert made.informer.problem() == "", "it has not been started"
    made.informer.start()
    made.informer.join(10)
    assert made.informer.problem() == "the watch of pods has ended"
    made.informer.stop()
    assert made.informer.problem() == ""


def test_a_stop_ends_the_open_watch_and_one_that_is_just_being_opened() -> None:
    api = Served([page()])
    with following(api) as made:
        assert api.opened.wait(10)
    late = Served([page()])
    made = Followed(late)
    opening = late.watch

    @contextlib.contextmanager
    def stopped_meanwhile(path: str, query: Any, quiet_for: float) -> Iterator[Any]:
        with opening(path, query, quiet_for) as stream:
            made.informer.stop()
            yield stream

    late.watch = stopped_meanwhile  # type: ignore[method-assign]
    made.informer.start()
    assert made.informer.join(10)
    assert not late.opened.is_set()


def test_an_unreadable_object_of_a_list_is_left_out_whoever_writes_it(caplog: pytest.LogCaptureFixture) -> None:
    """Pods have a strict schema; `from_tenants` only says whether what can be read is checked too."""
    unreadable = {UNREADABLE: True, "metadata": pod("b", 1)["metadata"]}
    api = Served([page(pod("a", 1), unreadable, token="second"), page(pod("d", 1), version=12)])
    with following(api, find=lambda: JOBS) as made:
        assert api.opened.wait(10)
        assert made.words == ["new a", "new d"]
        assert [one["resourceVersion"] for one in api.watched] == ["12"]
    (ignored,) = logged(caplog, "object ignored: its fields are nested too deeply")
    assert (ignored["namespace"], ignored["name"]) == ("team", "b")


def test_the_depth_of_what_users_do_not_write_is_not_checked() -> None:
    """A pod that is left out would be made a second time."""
    made = Followed(Served([page()]))
    deep: dict[str, Any] = {}
    for _ in range(2 * LIMIT):
        deep = {"a": deep}
    made.informer.handle({"type": "ADDED", "object": {**pod("deep", 1), "spec": deep}})
    assert made.words == ["new deep"]


def test_each_page_and_event_is_a_sign_of_life() -> None:
    """Each takes almost the tolerated time, by a clock that the API server sets."""
    times, problems = [0.0], []
    pages = [page(token="second"), page(token="third"), page()]

    def passes() -> None:
        times[0] += 0.9 * watch_health.STALE_AFTER
        problems.append(made.informer.problem())

    class Slow(Served):
        def list_objects(self, path: str, query: Any = None) -> dict[str, Any]:
            passes()
            return super().list_objects(path, query)

    def events() -> Iterator[Any]:
        for one in (event("ADDED", "e", 2), bookmark(3), bookmark(4)):
            passes()
            yield one

    api = Slow(pages, [events()])
    with following(api, replace(QUICK, clock=lambda: times[0])) as made:
        assert api.opened.wait(10)
    assert problems == [""] * 6


def test_an_informer_that_is_started_late_is_not_stuck() -> None:
    """A standby makes its informers at its start, and starts them when it is the leader."""
    asked, free = threading.Event(), threading.Event()

    def find() -> ApiResource:
        asked.set()
        free.wait(10)
        return JOBS

    times = [0.0]
    made = Followed(Served([page()]), replace(QUICK, clock=lambda: times[0]), find=find)
    times[0] += 2 * watch_health.STALE_AFTER
    made.informer.start()
    assert asked.wait(10)
    assert made.informer.problem() == ""
    made.informer.stop()
    free.set()
    made.informer.join(10)
