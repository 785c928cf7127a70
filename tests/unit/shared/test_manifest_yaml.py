"""What kubectl reads: the expected values are those of Go's sigs.k8s.io/yaml 1.6.0, which kubectl 1.34 uses."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.manifest_yaml import read, read_objects

PLAIN: dict[str, Any] = {
    **{text: text for text in ("2024-01-15", "2024-01-15T10:00:00Z", "2024-1-5", "12:30", "1:30:45", "190:20:30")},
    **{
        text: text
        for text in ("1.2.3", "10.0.0.1", "1,000", "1/2", "50%", "100m", "1Gi", "1e", "1e+", "e1", "0x", "0b2")
    },
    **{
        text: text
        for text in ("inf", "nan", "=", "<<", "_1", "--1", ".", "..", "+.", ".e1", "a#c", ":80", "yEs", "nULL")
    },
    **{text: text for text in ("0xFFFFFFFFFFFFFFFFF", "1e400")},
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    "0": 0,
    "5": 5,
    "-7": -7,
    "+1": 1,
    "0644": 420,
    "-017": -15,
    "0o17": 15,
    "08": 8,
    "019": 19,
    "0_7": 7,
    "1_000": 1000,
    "0x1F": 31,
    "0X1F": 31,
    "-0x1": -1,
    "0b101": 5,
    "0B1": 1,
    "18446744073709551615": 2**64 - 1,
    "1.5": 1.5,
    ".5": 0.5,
    "+.5": 0.5,
    "1.10": 1.1,
    "1e-4": 0.0001,
    "685_230.15": 685230.15,
    "5.": 5,
    "1.0": 1,
    "100.0": 100,
    "0.0": 0,
    "1e3": 1000,
    "1E3": 1000,
    "1.5e+3": 1500,
    ".5e1": 5,
    "12e03": 12000,
}


@pytest.mark.parametrize(("text", "value"), PLAIN.items())
def test_a_plain_scalar(text: str, value: Any) -> None:
    ((found, as_item),) = ((one["x"], one["y1"][0]) for one in read(f"x: {text}\ny1:\n- {text}\n"))
    assert (found, type(found)) == (value, type(value))
    assert as_item == found


@pytest.mark.parametrize("text", PLAIN)
def test_a_quoted_scalar_is_a_string(text: str) -> None:
    assert read(f"x: '{text}'\n") == [{"x": text}]
    assert read(f'x: "{text}"\n') == [{"x": text}]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("!!timestamp 2024-01-15", "2024-01-15"),
        ("!!binary aGVsbG8=", "hello"),
        ("|\n  12:30\n", "12:30\n"),
    ],
)
def test_a_scalar_with_a_tag_or_of_several_lines(text: str, value: Any) -> None:
    assert read(f"x: {text}\n") == [{"x": value}]


@pytest.mark.parametrize(
    ("key", "read_as"),
    [("1", "1"), ("0x10", "16"), ("1.5", "1.5"), ("true", "true"), ("on", "true"), ("n", "false"), ("12:30", "12:30")],
)
def test_a_key_is_a_string(key: str, read_as: str) -> None:
    assert read(f"{key}: a\n") == [{read_as: "a"}]


def test_anchors_and_merges() -> None:
    assert read("x: &a {b: 1}\nz: {<<: *a, c: 2}\n") == [{"x": {"b": 1}, "z": {"b": 1, "c": 2}}]


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan"])
def test_a_number_that_json_lacks_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(yaml.YAMLError, match=r"quote it if it is a string(.|\n)*line 2"):
        read(f"a: 1\nx: {text}\n")


def test_a_key_that_is_null_is_refused() -> None:
    with pytest.raises(yaml.YAMLError, match="a key that is null"):
        read("null: 1\n")


def test_the_objects_of_several_documents() -> None:
    text = "---\na: 1\n---\n# nothing\n---\nkind: List\nitems: [{b: 2}, null, {c: 12:30}]\n"
    assert list(read_objects(text)) == [(1, {"a": 1}), (3, {"b": 2}), (3, {"c": "12:30"})]


def test_a_document_that_is_no_object() -> None:
    with pytest.raises(ValueError, match="document 2 is no object: it needs apiVersion, kind and metadata"):
        list(read_objects("a: 1\n---\n- 1\n"))
    with pytest.raises(ValueError, match="document 2: item 3 of the List is no object: it needs apiVersion"):
        list(read_objects("a: 1\n---\nkind: List\nitems: [{b: 1}, null, 3]\n"))
