"""Reading a report: what is taken, what is left out, and what is refused with the field and the fix."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dljob_operator.engine.progress.report import LARGEST, Report, parse

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80)
JSON = st.recursive(_SCALARS, lambda some: st.lists(some) | st.dictionaries(st.text(max_size=20), some), max_leaves=8)
FIELDS = ("progressPercentage", "estimatedRemainingSeconds", "metrics", "lastUpdatedTime")


def body(**status: Any) -> bytes:
    return json.dumps({"trainerStatus": status}).encode()


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, Report()),
        ({"progressPercentage": 0}, Report(0)),
        ({"progressPercentage": 100, "estimatedRemainingSeconds": 0}, Report(100, 0)),
        ({"progressPercentage": 45.9, "estimatedRemainingSeconds": 12.5}, Report(45, 12)),
        ({"progressPercentage": None, "lastUpdatedTime": "in 1970"}, Report()),
        ({"metrics": [{"name": "loss", "value": "0.25"}]}, Report(metrics=(("loss", "0.25"),))),
        ({"metrics": [{"name": "loss", "value": "nan"}]}, Report(metrics=(("loss", "nan"),))),
        ({"metrics": [{"name": "step", "value": 7}]}, Report(metrics=(("step", "7"),))),
        (
            {"metrics": [{"name": "step_seconds", "value": "1.5"}]},
            Report(metrics=(("step_seconds", "1.5"),), step_seconds=1.5),
        ),
        (
            {"metrics": [{"name": "step_seconds", "value": "inf"}]},
            Report(metrics=(("step_seconds", "inf"),)),
        ),
        ({"metrics": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}, Report(metrics=(("a", "2"),))),
        ({"metrics": []}, Report()),
    ],
)
def test_what_is_taken(status: dict[str, Any], expected: Report) -> None:
    assert parse(body(**status)) == expected


@pytest.mark.parametrize(
    "metric",
    [
        {"name": "x" * 65, "value": "1"},
        {"name": "x", "value": "1" * 65},
        {"name": "", "value": "1"},
        {"name": "x"},
        {"name": "x", "value": ""},
        {"name": "x", "value": True},
        {"name": "x", "value": ["1"]},
        {"name": "a\x1b[31m", "value": "1"},
        {"name": "x", "value": "\ud800"},
        "x=1",
        None,
    ],
)
def test_a_metric_that_the_status_may_not_have_is_left_out(metric: Any) -> None:
    known = {"name": "loss", "value": "0.1"}
    assert parse(body(progressPercentage=1, metrics=[metric, known])) == Report(1, metrics=(("loss", "0.1"),))


def test_the_number_of_metrics_is_limited() -> None:
    many = [{"name": f"m{n}", "value": "1"} for n in range(300)]
    report = parse(body(metrics=many))
    assert report is not None
    assert [name for name, _ in report.metrics] == [f"m{n}" for n in range(256)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "Expecting value"),
        (b"\xff", "UTF-8"),
        (b"[]", "the body must be a map"),
        (b'{"trainerStatus": []}', "trainerStatus must be a map"),
        (b'{"trainerStatus": {"progressPercentage": NaN}}', "it has NaN; leave out what is not known"),
        (b'{"trainerStatus": {"progressPercentage": -Infinity}}', "it has -Infinity"),
        (b'{"trainerStatus": {"progressPercentage": 1e999}}', "progressPercentage must be a number from 0 to 100"),
        (body(progressPercentage=101), "trainerStatus.progressPercentage must be a number from 0 to 100"),
        (body(progressPercentage=-1), "trainerStatus.progressPercentage must be a number from 0 to 100"),
        (body(progressPercentage="45"), "trainerStatus.progressPercentage must be a number from 0 to 100"),
        (body(progressPercentage=True), "trainerStatus.progressPercentage must be a number from 0 to 100"),
        (body(estimatedRemainingSeconds=2**31), "estimatedRemainingSeconds must be a number from 0 to 2147483647"),
        (body(metrics={"loss": 1}), "trainerStatus.metrics must be a list"),
        (b"[" * LARGEST, "nested too deeply"),
        (b'{"trainerStatus": {"progressPercentage": ' + b"9" * 5000 + b"}}", "digits"),
    ],
)
def test_what_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(text)


def test_a_body_without_a_status_says_nothing() -> None:
    assert parse(b"{}") is None
    assert parse(b'{"trainerStatus": null}') is None


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_any_json_is_read_or_refused(status: dict[str, Any]) -> None:
    try:
        report = parse(body(**status))
    except ValueError:
        return
    assert report is not None
    assert report.percent is None or 0 <= report.percent <= 100
    assert report.remaining is None or 0 <= report.remaining < 2**31
    assert all(name.isprintable() and value.isprintable() for name, value in report.metrics)
    json.dumps(report.metrics).encode()


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse(text)
