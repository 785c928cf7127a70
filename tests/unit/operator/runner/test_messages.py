from __future__ import annotations

import dataclasses
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dljob_operator.json_texts import JsonTexts, text_of
from dljob_operator.runner.messages import Frame, FrameReader, RunEnding, RunRequest, RunResult, TaskFailure

_JSON = st.dictionaries(st.text(), st.one_of(st.none(), st.integers(), st.text(), st.lists(st.text())))


@given(st.lists(st.tuples(_JSON, st.binary(max_size=200)), max_size=5), st.integers(1, 50))
def test_frames_come_out_as_they_went_in_however_the_stream_is_cut(
    contents: list[tuple[dict[str, object], bytes]], piece: int
) -> None:
    frames = [Frame(header, body) for header, body in contents]
    stream = b"".join(frame.encode() for frame in frames)
    reader = FrameReader()
    got = [frame for at in range(0, len(stream), piece) for frame in reader.feed(stream[at : at + piece])]
    assert got == frames


def test_a_stream_that_is_none_of_frames_is_refused() -> None:
    with pytest.raises(ValueError, match="bytes"):
        list(FrameReader().feed(struct.pack("!II", 2**31, 2**31)))


def test_a_request_survives_the_way() -> None:
    request = RunRequest("t", {"a": ["ü", None, 1.5]}, frozenset({"a"}), {"u": {"Pod": []}}, 7.0, {"resources": None})
    assert RunRequest.from_body(request.to_body(), 7.0) == request
    contended = dataclasses.replace(request, is_contended=True, changes={"": 7}, taken={"": 7, "u": 3})
    assert RunRequest.from_body(contended.to_body(), 7.0) == contended


def test_objects_from_the_cache_are_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder is one step to the interpreter: for the pods of a large job no other thread would run for 40 ms."""
    objs = [{"metadata": {"name": f"digits-worker-{index}", "uid": "ü"}, "none": None} for index in range(3000)]
    texts = JsonTexts(map(text_of, objs))
    request = RunRequest("t", {"a": 1}, snapshot={"a": {"Pod": texts, "Service": objs[:1]}, "b": {"Pod": []}, "c": {}})
    lengths = []
    encode = json.dumps

    def dumps(value: object, separators: tuple[str, str]) -> str:
        lengths.append(len(encode(value)))
        return encode(value, separators=separators)

    monkeypatch.setattr("dljob_operator.json_texts.json.dumps", dumps)
    body = request.to_body()
    assert max(lengths) < 1_000
    assert RunRequest.from_body(body, request.timeout) == request


def test_a_result_survives_the_way_whatever_a_role_put_into_it() -> None:
    result = RunResult(RunEnding.COMPLETED, (TaskFailure("t", "m"),), {"ok": 1}, ({"jobs": [{"x": {1, 2}}]},))
    back = RunResult.from_body(result.to_body(), 0.1, "out")
    assert (back.failures, back.stats, back.seconds, back.output) == (result.failures, {"ok": 1}, 0.1, "out")
    assert back.reports[0]["jobs"][0]["x"] == "{1, 2}"


def test_only_a_completed_run_without_failures_is_ok() -> None:
    assert RunResult(RunEnding.COMPLETED).ok
    assert not RunResult(RunEnding.COMPLETED, (TaskFailure("a", "b"),)).ok
    assert not RunResult(RunEnding.TIMED_OUT).ok
    assert (
        RunResult(RunEnding.CRASHED, (TaskFailure("", "gone"), TaskFailure("task", "bad"))).message == "gone\ntask: bad"
    )
