"""Which requests and events a fault hits."""

from __future__ import annotations

import pytest
from devtools.lab.chaos.faults import EVENT, KINDS, PROCESS, REQUEST, Fault
from devtools.lab.chaos.injector import Call, Injector, matches

PODS = "/api/v1/namespaces/n/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/n/leases/dljob-operator"
READ, WRITE, UPDATE = Call("GET", PODS), Call("POST", PODS), Call("PUT", f"{PODS}/p/status")
WATCH = Call("GET", f"{PODS}?resourceVersion=1&watch=true")
RENEWAL = Call("PUT", LEASE)


def fault(kind: str, skip: int = 0) -> Fault:
    return Fault(0, kind, 0, 0.0, skip=skip)


@pytest.mark.parametrize(
    ("kind", "hit"),
    [
        ("conflict", {UPDATE}),
        ("throttled", {READ, WRITE, UPDATE}),
        ("lost response", {WRITE, UPDATE}),
        ("late write", {WRITE, UPDATE}),
        ("kill before write", {WRITE, UPDATE}),
        ("lost renewal", {RENEWAL}),
        ("half-open renewal", {RENEWAL}),
        ("event dropped", set()),
    ],
)
def test_a_fault_matches_only_requests_that_can_have_it(kind: str, hit: set[Call]) -> None:
    calls = {READ, WRITE, UPDATE, WATCH, RENEWAL}
    assert {call for call in calls if matches(fault(kind), call)} == hit


@pytest.mark.parametrize("kind", [k.name for k in KINDS if k.group == REQUEST or k.name.endswith(" write")])
def test_every_fault_of_a_request_matches_some_request(kind: str) -> None:
    assert any(matches(fault(kind), call) for call in (READ, WRITE, UPDATE, RENEWAL))


def test_a_fault_is_injected_once_after_the_requests_that_it_skips() -> None:
    injected: list[Fault] = []
    injector = Injector(injected.append)
    one = fault("lost response", skip=2)
    injector.arm(one)
    assert [injector.for_request(call) for call in (WRITE, READ, WRITE, WRITE, WRITE)] == [None, None, None, one, None]
    assert injected == [one]


def test_an_event_has_no_fault_of_a_request() -> None:
    injector = Injector()
    injector.arm(fault("server error"))
    assert injector.for_event() is None
    injector.arm(fault("event cut"))
    found = injector.for_event()
    assert found is not None
    assert found.kind == "event cut"


def test_what_nothing_matched_is_not_injected() -> None:
    injected: list[Fault] = []
    injector = Injector(injected.append)
    waiting = [fault("conflict"), fault("event gone")]
    for one in waiting:
        injector.arm(one)
    assert injector.disarm() == waiting
    assert injector.disarm() == []
    assert injected == []


def test_every_kind_has_a_group_that_the_run_knows() -> None:
    assert {kind.group for kind in KINDS} >= {REQUEST, EVENT, PROCESS}
