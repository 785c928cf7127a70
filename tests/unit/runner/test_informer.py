"""The informer beside an API server that hangs, falls silent, or rejects it. The others are tests/integration/engine."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client
from support.scripted_server import Exchange, scripted

from dljob_operator.engine import informer as module
from dljob_operator.engine import transforms, watch_health
from dljob_operator.engine.discovery import Resource
from dljob_operator.engine.informer import Informer, Source
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.predicates import Change

Respond = Callable[[Exchange], None]


def connect(url: str) -> KubeApi:
    return KubeApi(client.ApiClient(client.Configuration(host=url)))


def until(holds: Callable[[], object]) -> None:
    """Wait at most 10 s for what no event reports."""
    deadline = time.monotonic() + 10
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)


def pod(name: str, version: int) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "uid": name, "resourceVersion": str(version)}
    return {"metadata": metadata, "status": {"phase": "Pending"}}


def listed(*pods: dict[str, Any], version: int = 10) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version)}, "items": list(pods)}


class Watching:
    """An informer of pods and what it has reported."""

    def __init__(self, api: KubeApi) -> None:
        self.names: list[str] = []
        self.changed = threading.Condition()
        self.informer = Informer(
            api, Source("pods", lambda: Resource("/api/v1", "pods"), transforms.owned({})), self._on_change
        )

    def _on_change(self, change: Change) -> None:
        with self.changed:
            self.names.append(change.obj["metadata"]["name"])
            self.changed.notify_all()

    def saw(self, name: str) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: name in self.names, 10)


@contextlib.contextmanager
def watching(respond: Respond) -> Iterator[tuple[Watching, list[Exchange]]]:
    with scripted(respond) as server:
        made = Watching(connect(server.url))
        made.informer.start()
        try:
            yield made, server.requests
        finally:
            made.informer.stop()
            made.informer.join(5)
            assert not made.informer._thread.is_alive()


def api(list_: Respond, watch: Respond) -> Respond:
    return lambda exchange: (watch if exchange.watches else list_)(exchange)


def empty(exchange: Exchange) -> None:
    exchange.answer(listed())


def silent(exchange: Exchange) -> None:
    """A watch whose peer has vanished."""
    exchange.begin_stream()
    exchange.hang()


def test_a_watch_whose_peer_has_vanished_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.2)
    watches = iter([silent])

    def second(exchange: Exchange) -> None:
        exchange.begin_stream()
        if exchange.query["resourceVersion"] == "10":  # it goes on where it was
            exchange.line({"type": "ADDED", "object": pod("second", 11)})
        exchange.hang()

    respond = api(lambda one: one.answer(listed(pod("first", 10))), lambda one: next(watches, second)(one))
    with watching(respond) as (made, _):
        assert made.saw("second")
        assert made.names == ["first", "second"]


def test_a_watch_that_was_long_enough_resets_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses once grew to 30 s over the life of the process, so that every interruption cost that much."""
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.1)
    monkeypatch.setattr(module, "_SHORTEST_WATCH", 0.05)
    with scripted(api(empty, silent)) as server:
        made = Watching(connect(server.url))
        made.informer._pause = 30.0
        made.informer.start()
        try:
            until(lambda: made.informer._pause < 30)
            assert made.informer._pause == module._FIRST_PAUSE
        finally:
            made.informer.stop()
            made.informer.join(5)


def test_watches_that_open_and_deliver_nothing_lead_to_a_new_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.1)
    monkeypatch.setattr(module, "_SHORTEST_WATCH", 0.05)
    monkeypatch.setattr(module, "LIST_AGAIN_AFTER", 0.35)
    lists = iter([listed(pod("first", 10)), listed(pod("first", 10), pod("missed", 12), version=12)])
    respond = api(lambda one: one.answer(next(lists, listed(version=13))), silent)
    with watching(respond) as (made, requests):
        assert made.saw("missed")
        assert sum(exchange.watches for exchange in requests) >= 3


def test_a_watch_that_is_stuck_is_reported_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_health, "STALE_AFTER", 1.0)
    with watching(api(empty, silent)) as (made, _):
        assert made.informer.synced.wait(10)
        assert (made.informer.problem(), made.informer.not_ready()) == ("", "")
        until(lambda: made.informer.problem())
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
