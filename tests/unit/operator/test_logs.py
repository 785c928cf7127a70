"""Log lines: for any value, a record is one line and its fields can be parsed."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from dljob_operator import logs

HOSTILE = [
    "two words",
    "",
    "a=b",
    'say "no"',
    "back\\slash",
    "ends in a backslash\\",
    'x" ok=true name="y',
    "line\nbreak",
    "carriage\rreturn",
    "tab\tstop",
    "\n2026-01-02 03:04:05,678 INFO    reconciled kind=MXJob name=forged ok=true",
    "\x1b[2Kerased\x07",
    "nul\x00",
    "delete\x7f",
    "c1\x85next line",
    "\u2028line\u2029paragraph",
    "\u202eright to left",
    "no-break\u00a0space",
    "\ud800 lone surrogate",
    "\U000e0001 tag",
]
PLAIN = ["digits", "kubeflow.org/v1", "2026-01-02T03:04:05Z", "a-b_c.d:e@f+g"]
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (\w+) +(.*)", re.ASCII)
FIELD = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|[^" =]+)')


def record(message: str, /, *args: object, **values: Any) -> logging.LogRecord:
    made = logging.LogRecord("dljob_operator.engine", logging.INFO, "here.py", 1, message, args, None)
    made.__dict__.update(logs.fields(**values))
    return made


def parse(line: str) -> tuple[str, dict[str, str]]:
    """The message and the fields of a text line, read as a tool would read them."""
    found = LINE.fullmatch(line)
    assert found is not None, line
    rest = found[2]
    if rest.startswith('"'):
        message, end = json.JSONDecoder().raw_decode(rest)
    else:
        first = FIELD.search(rest)
        end = first.start() if first else len(rest)
        message = rest[:end]
    values = {}
    while end < len(rest):
        field = FIELD.match(rest, end)
        assert field is not None, rest[end:]
        values[field[1]] = json.loads(field[2]) if field[2].startswith('"') else field[2]
        end = field.end()
    return message, values


def assert_one_line(line: str) -> None:
    assert line.splitlines() == [line]
    assert line.isprintable()
    line.encode()


@pytest.mark.parametrize("value", [*HOSTILE, *PLAIN])
def test_a_text_line_holds_any_value(value: str) -> None:
    line = logs.TextFormatter().format(record("reconciled", kind="MXJob", name=value, ok=False))
    assert_one_line(line)
    assert parse(line) == ("reconciled", {"kind": "MXJob", "name": value, "ok": "false"})


@pytest.mark.parametrize("value", [*HOSTILE, *PLAIN])
def test_a_json_line_holds_any_value(value: str) -> None:
    line = logs.JsonFormatter().format(record("reconciled", kind="MXJob", name=value, ok=False))
    assert_one_line(line)
    found = json.loads(line)
    assert {key: found[key] for key in ("level", "message", "kind", "name", "ok")} == {
        "level": "info",
        "message": "reconciled",
        "kind": "MXJob",
        "name": value,
        "ok": False,
    }


@pytest.mark.parametrize("message", HOSTILE)
def test_a_message_cannot_add_a_line_or_a_field(message: str) -> None:
    made = record("%s", message, name="digits")
    line = logs.TextFormatter().format(made)
    assert_one_line(line)
    assert parse(line)[1] == {"name": "digits"}
    line = logs.JsonFormatter().format(made)
    assert_one_line(line)
    assert (json.loads(line)["message"], json.loads(line)["name"]) == (message, "digits")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("digits", "digits"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (0.12, "0.12"),
        (1.0, "1.0"),
        (0.123456, "0.123"),
        ("two words", '"two words"'),
        ("µs", '"µs"'),
        ("", '""'),
        (["a", "b"], "\"['a', 'b']\""),
    ],
)
def test_the_text_of_a_value(value: object, text: str) -> None:
    assert logs.TextFormatter().format(record("m", x=value)).endswith(f" m x={text}")


def test_the_example_of_the_documentation() -> None:
    made = record("reconciled", kind="MXJob", namespace="default", name="digits", ok=True, changed=True, seconds=0.1234)
    expected = "INFO    reconciled kind=MXJob namespace=default name=digits ok=true changed=true seconds=0.123"
    assert logs.TextFormatter().format(made).endswith(expected)


def test_a_field_without_a_value_is_left_out() -> None:
    assert logs.TextFormatter().format(record("m", a=None, b=1)).endswith(" m b=1")
    assert "a" not in json.loads(logs.JsonFormatter().format(record("m", a=None, b=1)))


def test_a_field_does_not_replace_the_records_own() -> None:
    found = json.loads(logs.JsonFormatter().format(record("m", message="forged", level="x", time="x", logger="x")))
    assert (found["message"], found["level"], found["logger"]) == ("m", "info", "dljob_operator.engine")


@pytest.mark.parametrize("formatter", [logs.TextFormatter(), logs.JsonFormatter()])
def test_a_traceback_stays_in_the_line(formatter: logging.Formatter) -> None:
    made = record("failed")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        made.exc_info = sys.exc_info()
    line = formatter.format(made)
    assert_one_line(line)
    exception = (json.loads(line) if line.startswith("{") else parse(line)[1])["exception"]
    assert exception.startswith("Traceback") and exception.endswith("ValueError: two\nlines")


def test_the_ready_line() -> None:
    assert logs.ready_line("ready: watching v1 A", "text") == "ready: watching v1 A"
    found = json.loads(logs.ready_line("ready: watching v1 A", "json"))
    assert (found["message"], found["level"]) == ("ready: watching v1 A", "info")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger; its handlers, pytest's own, are restored afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.parametrize(("log_format", "begins"), [("text", "2"), ("json", '{"time":')])
def test_records_go_to_stderr(
    root: logging.Logger, capsys: pytest.CaptureFixture[str], log_format: str, begins: str
) -> None:
    root.handlers.clear()  # otherwise logging keeps pytest's
    logs.configure("warning", log_format)
    logging.getLogger("dljob_operator.x").warning("cannot watch", extra=logs.fields(resource="pods"))
    logging.getLogger("dljob_operator.x").info("not shown")
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(begins) and "cannot watch" in line and "pods" in line
