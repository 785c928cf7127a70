"""Events on jobs: one for each error, counted, and without any effect on the reconcile when they cannot be written."""

from __future__ import annotations

from typing import Any

import pytest
from support.fake_kube_api import ECHO, FakeKubeApi

from dljob_operator.engine import events
from dljob_operator.engine.events import EventRecorder


@pytest.fixture
def api() -> FakeKubeApi:
    return FakeKubeApi()


def job(uid: str = "1", **metadata: Any) -> dict[str, Any]:
    metadata = {"name": "digits", "namespace": "team", "uid": uid, **metadata}
    return {"apiVersion": ECHO.api_version, "kind": ECHO.kind, "metadata": metadata}


def counts(api: FakeKubeApi) -> dict[str, int]:
    return {event["message"]: event["count"] for event in api.events()}


def test_an_error_becomes_a_warning_about_the_job(api: FakeKubeApi) -> None:
    EventRecorder(api).warn(job(), "ReconcileFailed", "no such role")
    (event,) = api.events()
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "ReconcileFailed", "no such role")
    assert event["involvedObject"] == {
        "apiVersion": "example.com/v1",
        "kind": "EchoJob",
        "name": "digits",
        "namespace": "team",
        "uid": "1",
    }
    assert event["metadata"]["name"] == "digits.1267fdb3143310c6", "a later version continues the Event"


def test_the_event_of_a_cluster_scoped_object_is_in_the_default_namespace(api: FakeKubeApi) -> None:
    EventRecorder(api).warn(job(namespace=None), "ReconcileFailed", "no such role")
    assert [call.namespace for call in api.fake.calls] == ["default"]
    assert len(api.fake.objects["default", "events"]) == 1


def test_a_repeated_error_is_counted_and_has_its_last_time(api: FakeKubeApi) -> None:
    recorder = EventRecorder(api)
    for _ in range(3):
        recorder.warn(job(), "ReconcileFailed", "no such role")
        api.events()[0]["lastTimestamp"] = "earlier"
    recorder.warn(job(), "ReconcileFailed", "no such role")
    (event,) = api.events()
    assert event["count"] == 4
    assert event["lastTimestamp"] != "earlier"
    assert api.requests() == ["POST events", *["PATCH events"] * 3]


def test_different_errors_and_different_jobs_have_events_of_their_own(api: FakeKubeApi) -> None:
    recorder = EventRecorder(api)
    recorder.warn(job(), "ReconcileFailed", "no such role")
    recorder.warn(job(), "ReconcileFailed", "no such image")
    recorder.warn(job(), "Other", "no such role")
    recorder.warn(job("2"), "ReconcileFailed", "no such role")
    assert [event["count"] for event in api.events()] == [1, 1, 1, 1]


def test_an_event_that_the_server_has_removed_is_written_again(api: FakeKubeApi) -> None:
    recorder = EventRecorder(api)
    recorder.warn(job(), "ReconcileFailed", "no such role")
    api.fake.objects["team", "events"].clear()  # after an hour
    recorder.warn(job(), "ReconcileFailed", "no such role")
    assert counts(api) == {"no such role": 1}


def test_a_restarted_operator_continues_the_event_and_its_count(api: FakeKubeApi) -> None:
    before = EventRecorder(api)
    for _ in range(3):
        before.warn(job(), "ReconcileFailed", "no such role")
    api.events()[0]["lastTimestamp"] = "earlier"
    recorder = EventRecorder(api)
    recorder.warn(job(), "ReconcileFailed", "no such role")
    assert api.events()[0]["lastTimestamp"] != "earlier"
    assert counts(api) == {"no such role": 4}
    recorder.warn(job(), "ReconcileFailed", "no such role")
    assert counts(api) == {"no such role": 5}
    assert "GET events" not in api.requests(), "the operator has no permission for it"


def test_an_event_without_a_count_has_happened_once_more(api: FakeKubeApi) -> None:
    EventRecorder(api).warn(job(), "ReconcileFailed", "no such role")
    del api.events()[0]["count"]
    EventRecorder(api).warn(job(), "ReconcileFailed", "no such role")
    assert counts(api) == {"no such role": 1}


@pytest.mark.parametrize("status", [403, 500, 0])
@pytest.mark.parametrize("failing", ["the first Event", "its count", "the Event of an earlier process"])
def test_an_event_that_cannot_be_written_is_logged_and_has_no_other_effect(
    api: FakeKubeApi, caplog: pytest.LogCaptureFixture, failing: str, status: int
) -> None:
    recorder = EventRecorder(api)
    if failing != "the first Event":
        recorder.warn(job(), "ReconcileFailed", "no such role")
    if failing == "the Event of an earlier process":
        recorder = EventRecorder(api)
    api.fail("POST" if failing == "the first Event" else "PATCH", status)
    recorder.warn(job(), "ReconcileFailed", "no such role")
    (record,) = caplog.records
    assert record.message == "cannot record an Event"
    assert record.__dict__["dljob_fields"]["name"] == "digits"
    assert record.__dict__["dljob_fields"]["error"]


def test_counts_are_kept_of_the_last_errors_only(api: FakeKubeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_REMEMBERED", 2)
    recorder = EventRecorder(api)
    for message in ("first", "second", "first", "third", "first", "second"):
        recorder.warn(job(), "ReconcileFailed", message)
    assert counts(api) == {"first": 3, "second": 2, "third": 1}
    assert api.requests().count("POST events") == 4, "the second error was evicted before it came again"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("x" * 1000, "x" * 1000),
        ("x" * 1001, "x" * 996 + " ..."),
        ("ü" * 500, "ü" * 500),
        ("ü" * 501, "ü" * 498 + " ..."),
        ("x" + "ü" * 500, "x" + "ü" * 497 + " ..."),
    ],
    ids=["fits", "too long", "fits in bytes", "too long in bytes", "no half character"],
)
def test_a_message_fits_the_limit_of_the_api_server(api: FakeKubeApi, message: str, expected: str) -> None:
    EventRecorder(api).warn(job(), "ReconcileFailed", message)
    (event,) = api.events()
    assert event["message"] == expected
