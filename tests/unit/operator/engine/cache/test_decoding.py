"""What a decoding leaves of lists and watch events, beside what the standard library decodes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import OWNED_KINDS
from hypothesis import given
from hypothesis import strategies as st

from dljob_operator.engine.cache import decoding, transforms
from dljob_operator.engine.cache.decoding import WHOLE, decoding_of
from dljob_operator.engine.cache.nesting import UNREADABLE, read_event

WATCHED = {name: kind.cached for name, kind in OWNED_KINDS.items() if kind.cached is not None}
NAMES = (
    "metadata",
    "spec",
    "status",
    "containers",
    "conditions",
    "name",
    "labels",
    "annotations",
    "managedFields",
    "x",
)
ANY = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(NAMES), below, max_size=4),
    max_leaves=20,
)
DICTS = st.dictionaries(st.sampled_from(NAMES), ANY)
POD = {
    "apiVersion": "v1",
    "metadata": {
        "name": "p",
        "uid": "u",
        "resourceVersion": "2",
        "annotations": {"dljob.operator/spec-hash": "1", "other": "2"},
        "managedFields": [{"fieldsV1": {"f:a": {}}}],
    },
    "spec": {"nodeName": None, "containers": [{"name": "c", "image": "i"}], "volumes": [{}]},
    "status": {"phase": "Running", "conditions": [{"type": "Ready"}], "qosClass": "BestEffort"},
}

pytest.importorskip("msgspec")


def transformed(kind: str, obj: Any) -> str:
    """The reduced object in its order, or the type of the error."""
    try:
        return json.dumps(transforms.owned(WATCHED[kind])(obj))
    except (AttributeError, TypeError) as error:
        return type(error).__name__


@given(st.sampled_from(sorted(WATCHED)), ANY, DICTS, DICTS, DICTS)
def test_the_transform_finds_the_same(kind: str, other: Any, metadata: Any, spec: Any, status: Any) -> None:
    for obj in (other, {"metadata": metadata, "spec": spec, "status": status}):
        event = json.dumps({"type": "ADDED", "object": obj}).encode()
        decoded = decoding_of(WATCHED[kind]).event(event)
        assert (decoded["type"], transformed(kind, decoded["object"])) == ("ADDED", transformed(kind, obj))
        page = json.dumps({"metadata": {"continue": "c"}, "items": [obj]}).encode()
        decoded = decoding_of(WATCHED[kind]).page(page)
        assert decoded["metadata"] == {"continue": "c"}
        assert [transformed(kind, one) for one in decoded["items"]] == [transformed(kind, obj)]


def test_what_the_cache_does_not_keep_is_not_decoded() -> None:
    pod = decoding_of(WATCHED["Pod"]).event(json.dumps({"type": "ADDED", "object": POD}).encode())["object"]
    assert "managedFields" not in pod["metadata"]
    assert transformed("Pod", pod) == transformed("Pod", POD)
    assert pod["spec"] == {"nodeName": None, "containers": [{"name": "c"}]}
    assert pod["status"] == {"phase": "Running", "conditions": [{"type": "Ready"}]}


def test_the_end_of_a_watch_and_a_bookmark_stay_whole() -> None:
    decode = decoding_of(WATCHED["Pod"]).event
    for event in (
        {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}},
        {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7"}}},
    ):
        assert decode(json.dumps(event).encode()) == event


@pytest.mark.parametrize("path", [("spec", "volumes"), ("metadata", "managedFields"), ("status", "conditions")])
def test_what_is_nested_too_deeply_is_refused_wherever_it_is(path: tuple[str, str]) -> None:
    pod = json.dumps({**POD, path[0]: {**POD[path[0]], path[1]: "DEEP"}})  # type: ignore[dict-item]
    text = b'{"type":"ADDED","object":%s}' % pod.replace('"DEEP"', "[" * 5_000 + "]" * 5_000).encode()
    for decode in (WHOLE.event, decoding_of(WATCHED["Pod"]).event):
        with pytest.raises(RecursionError):
            decode(text)
        identity = {key: POD["metadata"][key] for key in ("name", "uid", "resourceVersion")}  # type: ignore[index]
        assert read_event(text, decode) == {"type": "ADDED", UNREADABLE: True, "object": {"metadata": identity}}


def test_without_the_library_everything_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "msgspec", None)
    assert decoding_of(WATCHED["Pod"]) is WHOLE
