"""Substitution of placeholders such as ``{index}``."""

from __future__ import annotations

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.cluster_spec import PLACEHOLDERS, placeholders
from ansible_collections.dljob.operator.plugins.module_utils.logic.placeholders import fill
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework
from support.builders import mxjob, seen_from


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{index}", "3"),
        ("{host}:{port}", "a:80"),
        ("no braces", "no braces"),
        ("{{index}}", "{3}"),
        ("{ index }", "{ index }"),
        ("{}", "{}"),
        ('{"json": {index}}', '{"json": 3}'),
    ],
)
def test_fill(text: str, filled: str) -> None:
    assert fill(text, {"index": 3, "host": "a", "port": 80}) == filled


def test_a_value_is_not_filled_again() -> None:
    assert fill("{job}", {"job": "{index}", "index": 3}) == "{index}"


def test_an_unknown_name() -> None:
    with pytest.raises(InvalidFramework, match=r"unknown placeholder \{nr\} in 'x\{nr\}'; there are: host, index"):
        fill("x{nr}", {"index": 3, "host": "a"})


def test_what_there_is() -> None:
    job = mxjob("digits").v1().servers(2).workers(3).option(RuntimeId="76no").job()
    values = placeholders(seen_from(job, "Worker", 1))
    assert values == {
        "job": "digits",
        "namespace": "default",
        "uid": job.uid,
        "runtime_id": "76no",
        "kind": "MXJob",
        "kind_lower": "mxjob",
        "type": "Worker",
        "type_lower": "worker",
        "type_upper": "WORKER",
        "index": 1,
        "rank": 4,
        "count": 3,
        "total": 6,
        "host": "digits-worker-1",
        "port": 9091,
        "rank0_host": "digits-scheduler-0",
        "rank0_port": 9091,
    }
    assert set(values) == PLACEHOLDERS


def test_rank_0_where_the_first_type_has_no_replica() -> None:
    job = mxjob("digits").v1().without("Scheduler").servers(0).workers(2).option(jobMode="local").job()
    assert placeholders(seen_from(job, "Worker", 1))["rank0_host"] == "digits-worker-0"
