"""Objects whose fields are nested too deeply: they are left out, and all others are listed and watched."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from support.served_kube_api import Served

from dljob_operator.engine.cache import transforms
from dljob_operator.engine.cache.informer import Informer, Pace, WatchSource
from dljob_operator.engine.cache.nesting import LIMIT, UNREADABLE, is_too_deep, outline_list, read_event
from dljob_operator.engine.discovery import ApiResource

ECHO = ApiResource("/apis/example.com/v1", "echojobs")


def nested(levels: int) -> Any:
    value: Any = {}
    for number in range(levels - 1):
        value = [value] if number % 2 else {"a": value, "b": 1}
    return value


@pytest.mark.parametrize(("levels", "too_deep"), [(1, False), (LIMIT + 1, False), (LIMIT + 2, True), (5_000, True)])
def test_levels(levels: int, too_deep: bool) -> None:
    assert is_too_deep(nested(levels)) is too_deep


def job(name: str, levels: int = 1) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team", "uid": f"{name}-uid", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": nested(levels)}


@contextlib.contextmanager
def watching(*jobs: dict[str, Any], event: dict[str, Any] | None = None) -> Iterator[tuple[Informer, Served]]:
    """An informer that has listed these jobs, whose watch has brought `event` and was opened again after it."""
    api = Served([{"items": list(jobs), "metadata": {"resourceVersion": "7"}}], [[event]] if event else [])
    source = WatchSource("echojobs", lambda: ECHO, transforms.custom, "team", from_tenants=True)
    informer = Informer(api, source, lambda change: None, pace=Pace(first_pause=0.001))
    informer.start()
    try:
        assert api.opened.wait(10)
        yield informer, api
    finally:
        informer.stop()
        assert informer.join(10)


UNREAD = {UNREADABLE: True, "metadata": job("unreadable")["metadata"]}


@pytest.mark.parametrize("bad", [job("deep", LIMIT + 50), UNREAD], ids=lambda one: one["metadata"]["name"])
def test_a_list_leaves_it_out_and_has_all_others(bad: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), watching(job("a"), bad, job("b")) as (informer, api):
        assert [watch["resourceVersion"] for watch in api.watched] == ["7"]
        assert [one["metadata"]["name"] for one in informer.store.all()] == ["a", "b"]
    (record,) = caplog.records
    assert "nested too deeply" in record.getMessage()
    identity = {"resource": "echojobs", "namespace": "team", "name": bad["metadata"]["name"]}
    assert record.__dict__["dljob_fields"].items() >= (identity | {"limit": LIMIT}).items()


def test_a_job_that_is_edited_into_such_a_one_is_no_longer_known() -> None:
    with watching(job("a"), event={"type": "MODIFIED", "object": job("a", LIMIT + 50)}) as (informer, _):
        assert len(informer.store) == 0


DEEP = 100_000
MISLEADING = {
    # keys and braces in strings, and the same keys at other places and on other levels
    "annotations": {"uid": "wrong", "text": '{"metadata": {"uid": "wrong\\"}'},
    "labels": {"name": "wrong"},
    "generateName": "wrong",
    "ownerReferences": [{"uid": "wrong", "name": "wrong"}],
}


def line_of(type_: str = "MODIFIED", **metadata: Any) -> bytes:
    """An event as the API server sends it, of a job that Python's decoder cannot read."""
    known = {"name": 'a"}', "namespace": "team", "uid": "a-uid", "resourceVersion": "9"}
    deep = '{"a":' * DEEP + "[1]" + "}" * DEEP
    text = json.dumps({"apiVersion": "v1", "metadata": {**MISLEADING, "managedFields": "?", **known, **metadata}})
    text = text.replace('"?"', f'[{{"fieldsV1": {deep}}}]')
    return f'{{"type":"{type_}","object":{text[:-1]},"spec":{{"metadata":{{"uid":"wrong"}},"deep":{deep}}}}},"more":"wrong"}}'.encode()


def test_an_event_that_cannot_be_decoded_has_the_identity_of_its_object() -> None:
    with pytest.raises(RecursionError):
        json.loads(line_of())
    event = read_event(line_of("ADDED"))
    assert event["type"] == "ADDED"
    assert event["object"] == {"metadata": {"name": 'a"}', "namespace": "team", "uid": "a-uid", "resourceVersion": "9"}}


def test_the_object_of_an_event_that_cannot_be_decoded_may_be_in_no_namespace() -> None:
    metadata = read_event(line_of(namespace=None))["object"]["metadata"]
    assert metadata == {"name": 'a"}', "uid": "a-uid", "resourceVersion": "9"}


def test_an_event_that_cannot_be_decoded_and_has_no_identity() -> None:
    with pytest.raises(RecursionError):
        read_event(line_of(uid=None))


def list_of(*items: str) -> bytes:
    """A list as the API server sends it, after and before what only resembles its items."""
    head = '"kind":"List","metadata":{"resourceVersion":"7","items":[{"metadata":{}}],"continue":"items"}'
    return f'{{{head},"items":[{", ".join(items)}],"other":[{{"metadata":{{}}}}]}}'.encode()


def text_of(name: str, levels: int) -> str:
    """An item with so many levels, and managedFields that repeat them, as the API server adds them."""
    known = {"name": name, "namespace": "team", "uid": f"{name}-uid", "resourceVersion": "9"}

    def deep(levels: int) -> str:
        return '{"a":' * (levels - 1) + "[]" + "}" * (levels - 1)

    metadata = json.dumps({**MISLEADING, "managedFields": "?", **known}).replace('"?"', deep(levels - 2))
    return f'{{"metadata":{metadata},"spec":{deep(levels - 1)}}}'


def test_a_list_that_cannot_be_decoded_has_the_identity_of_its_deep_objects() -> None:
    text = list_of(text_of('a"]}', DEEP), text_of("b", 4), text_of("c", LIMIT), text_of("d", LIMIT + 1))
    with pytest.raises(RecursionError):
        json.loads(text)
    found = outline_list(text)
    assert found["metadata"] == {"resourceVersion": "7", "items": [{"metadata": {}}], "continue": "items"}
    assert found["other"] == [{"metadata": {}}]
    first, b, c, last = found["items"]
    assert first == {
        UNREADABLE: True,
        "metadata": {"name": 'a"]}', "namespace": "team", "uid": 'a"]}-uid', "resourceVersion": "9"},
    }
    assert (b["spec"], b["metadata"]["labels"]) == ({"a": {"a": []}}, MISLEADING["labels"])
    assert (UNREADABLE in c, UNREADABLE in last) == (False, True)


@pytest.mark.parametrize("names", [["b", "deep"], ["b", "deep", "c"]], ids="-".join)
def test_the_deep_object_of_a_list_may_be_at_any_place(names: list[str]) -> None:
    found = outline_list(list_of(*(text_of(name, DEEP if name == "deep" else 4) for name in names)))
    assert [(one["metadata"]["name"], UNREADABLE in one) for one in found["items"]] == [
        (name, name == "deep") for name in names
    ]


@pytest.mark.parametrize(
    "text",
    [
        list_of('{"metadata":{"name":"a"},"spec":' + "[" * DEEP + "]" * DEEP + "}"),
        b'{"items":[],"metadata":' + b"[" * DEEP + b"]" * DEEP + b"}",
    ],
    ids=["no identity", "not an item"],
)
def test_a_list_that_has_no_object_to_leave_out(text: bytes) -> None:
    with pytest.raises(RecursionError):
        outline_list(text)


def test_other_events_are_read_as_they_are() -> None:
    event = {"type": "ADDED", "object": job("a")}
    assert read_event(json.dumps(event).encode()) == event


def test_such_an_event_is_the_end_of_its_job_and_lists_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A tenant who changes such a job again and again would have all jobs of the kind listed each time."""
    event = read_event(line_of(name="a"))
    with caplog.at_level(logging.WARNING), watching(job("a"), job("b"), event=event) as (informer, api):
        assert [one["metadata"]["name"] for one in informer.store.all()] == ["b"]
        assert [watch["resourceVersion"] for watch in api.watched] == ["7", "9"]
        assert len(api.listed) == 1
    (record,) = caplog.records
    assert "nested too deeply" in record.getMessage()
