"""Events that are created later: in their order, without keeping the caller, and with their errors reported."""

from __future__ import annotations

import threading
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import event_sender
from ansible_collections.dljob.operator.plugins.module_utils.api.bounded_executor import BoundedExecutor
from ansible_collections.dljob.operator.plugins.module_utils.api.event_sender import EventSender
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import ApiRequest
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError


class Api(RestClient):
    """Creates an Event once ``free`` is set; ``errors`` are those of single paths."""

    def __init__(self, **errors: Exception) -> None:
        self.executor = BoundedExecutor(1)
        self.free = threading.Event()
        self.created: list[str] = []
        self.errors = errors

    def request(self, method: str, path: str, *_: Any, **__: Any) -> dict[str, Any]:
        assert self.free.wait(20)
        if path in self.errors:
            raise self.errors[path]
        self.created.append(path)
        return {}


def event(path: str) -> ApiRequest:
    return ApiRequest("POST", path)


def test_the_caller_does_not_wait_and_the_rest_is_sent_at_the_end() -> None:
    api = Api()
    with EventSender(api) as sender:
        assert sender.send([event("a"), event("b")]) == []
        sender.send([event("c")])
        assert api.created == []
        api.free.set()
    assert api.created == ["a", "b", "c"]


def test_errors_are_those_of_earlier_events() -> None:
    api = Api(denied=ApiError(403, "Forbidden", "may not"), broken=OSError("no credentials"))
    api.free.set()
    with EventSender(api) as sender:
        sender.send([event("denied"), event("broken"), event("a")])
    assert api.created == ["a"], "one after the failed ones"
    assert sender.send([]) == ["Event: may not", "Event: OSError: no credentials"]
    assert sender.send([]) == []


def test_where_too_many_wait_the_caller_does(monkeypatch: Any) -> None:
    monkeypatch.setattr(event_sender, "MOST_WAITING", -1)
    api = Api()
    api.free.set()
    with EventSender(api) as sender:
        sender.send([event("a")])
        assert api.created == ["a"]


def test_the_end_waits_for_an_api_server_that_hangs_no_longer_than_a_while(monkeypatch: Any) -> None:
    monkeypatch.setattr(event_sender, "LONGEST_END", 0.05)
    api = Api()
    with EventSender(api) as sender:
        sender.send([event("a")])
    api.free.set()
