"""JSON with and without the compiled library: the same results and the same refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared import json_codec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(), below),
)
REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["compiled", "standard library"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "compiled":
        pytest.importorskip("msgspec")
    else:
        monkeypatch.setattr(json_codec, "msgspec", None)
    return str(request.param)


@REUSED
@given(VALUES)
def test_what_was_encoded_is_decoded_and_is_one_line(library: str, value: Any) -> None:
    text = json_codec.dumps(value)
    assert repr(json_codec.loads(text)) == repr(value)
    assert repr(json.loads(text)) == repr(value)
    assert b"\n" not in text


@REUSED
@given(VALUES)
def test_both_decode_what_the_other_encodes(library: str, value: Any) -> None:
    assert repr(json_codec.loads(json.dumps(value))) == repr(value)


def same(loads: Callable[[bytes], Any], text: bytes) -> Any:
    try:
        return repr(loads(text))
    except (ValueError, RecursionError) as error:
        return type(error)


@pytest.mark.parametrize(
    "text",
    [
        *(
            b"1.0",
            b"-0",
            b"-0.0",
            b"1e22",
            b"18446744073709551616",
            b"9" * 60,
            b"1e400",
            b'"\\ud800"',
            b'"\\ud83d\\ude00"',
        ),
        *(b'{"a":1,"a":2}', b'{"a":{"b":1},"a":{}}', b"\xef\xbb\xbf1", b" [1] \n"),
        *(b"", b"[1,]", b"01", b"-", b'"\x01"', b'"\xff"', b"nul", b'{"a"}', b"1 2"),
        *(b"[" * levels + b"]" * levels for levels in (100, 500, 5_000, 100_000)),
    ],
)
def test_it_decodes_and_refuses_what_the_standard_library_does(library: str, text: bytes) -> None:
    assert same(json_codec.loads, text) == same(json.loads, text)


@pytest.mark.parametrize("text", [b"NaN", b'{"a":[-Infinity]}'])
def test_what_no_api_server_sends_is_refused(library: str, text: bytes) -> None:
    with pytest.raises(ValueError, match="is no JSON"):
        json_codec.loads(text)


def test_half_of_a_surrogate_pair_survives(library: str) -> None:
    value = {"a": "\ud800", "b": 1}
    assert json_codec.loads(json_codec.dumps(value)) == value
