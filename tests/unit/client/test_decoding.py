"""Answers of an API server that are nonsense, or nested too deeply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dljob import decoding
from dljob.errors import ApiError

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "something else than JSON"),
        (b"<html>", "something else than JSON"),
        (b"\xff", "something else than JSON"),
        (b"[]", "something else than an object"),
        (b"null", "something else than an object"),
        (b'{"spec": ' + DEEP + b"}", "nested too deeply"),
        (b'{"items": "' + b"}" * 9 + b'", "spec": ' + DEEP + b"}", "nested too deeply"),
        (DEEP, "nested too deeply"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_an_answer_that_is_no_object(body: bytes, said: str) -> None:
    with pytest.raises(ApiError, match=said):
        decoding.answer(body)


def test_a_list_without_what_is_nested_too_deeply() -> None:
    odd = b'{"metadata": {"name": "}]\\"{["}}'
    body = b'{"items": [%b, {"spec": %b}, 3, %b], "metadata": {"continue": "x"}}' % (odd, DEEP, odd)
    found = decoding.answer(body)
    assert found["items"] == [json.loads(odd), None, 3, json.loads(odd)]
    assert found["metadata"] == {"continue": "x"}
    assert decoding.items(found) == [json.loads(odd)] * 2


@pytest.mark.parametrize("items", [3, "x", {"a": 1}])
def test_a_list_of_something_else(items: Any) -> None:
    with pytest.raises(ApiError, match="something else than a list"):
        decoding.items({"items": items})
    assert decoding.items({"items": None}) == decoding.items({}) == []


@pytest.mark.parametrize("line", [b"", b"{", b"\xff", DEEP])
def test_an_event_that_cannot_be_decoded(line: bytes) -> None:
    assert decoding.event(line) is None


@pytest.mark.parametrize(
    "event",
    [
        [],
        None,
        {},
        {"type": "ADDED"},
        {"type": "ADDED", "object": []},
        {"type": "ADDED", "object": {}},
        {"type": "ADDED", "object": {"metadata": []}},
        {"type": 1, "object": {"metadata": {"name": "a"}}},
    ],
)
def test_an_event_without_an_object(event: Any) -> None:
    assert decoding.event(json.dumps(event).encode()) == ("ERROR", {})


def test_an_event() -> None:
    found = {"metadata": {"name": "a"}}
    assert decoding.event(json.dumps({"type": "ADDED", "object": found}).encode()) == ("ADDED", found)
    status = {"code": 410, "reason": "Expired", "message": "too old"}
    assert decoding.event(json.dumps({"type": "ERROR", "object": status}).encode()) == ("ERROR", status)
    error = decoding.failure(status)
    assert (error.status, error.reason, str(error)) == (410, "Expired", "too old")
    for code in (None, True, "410", 7, [[]]):
        assert decoding.failure({"code": code}).status == 502
