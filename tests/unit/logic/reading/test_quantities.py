"""Malformed quantities are reported with their field; the API server's message names none."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.invalid import plan_invalid
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import quantities
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.quantities import malformed
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from support.builders import MXNET, NOW, mxjob


def _found(value: Any) -> list[str]:
    return list(malformed({"containers": [{"resources": {"limits": {"amd.com/gpu": value}}}]}, "spec"))


@pytest.mark.parametrize(
    "value",
    ["1", "0", "-1", "+1", "1.5", ".5", "5.", "500m", "1k", "4Gi", "1E", "1e3", "1E-3", "12e+6", "7n", 1, 0.5, None],
)
def test_quantities(value: Any) -> None:
    assert _found(value) == []


@pytest.mark.parametrize(
    "value",
    ["1KiB", "", " 1", "1 Gi", "one", "1gi", "0x1", "1,5", "--1", "\u0661", "1\n", True, {}, {"a": 1}, [1], 1e100],
)
def test_no_quantities(value: Any) -> None:
    (message,) = _found(value)
    assert message.startswith(f"spec.containers[0].resources.limits[amd.com/gpu]: {str(value)!r} is no quantity")


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"resources": {"limits": {"cpu": "x"}}}, "spec.resources.limits[cpu]"),
        ({"overhead": {"cpu": "x"}}, "spec.overhead[cpu]"),
        (
            {"initContainers": [{}, {"resources": {"requests": {"cpu": "x"}}}]},
            "spec.initContainers[1].resources.requests[cpu]",
        ),
        ({"volumes": [{"emptyDir": {"sizeLimit": "x"}}]}, "spec.volumes[0].emptyDir.sizeLimit"),
    ],
)
def test_where_quantities_are(spec: dict[str, Any], where: str) -> None:
    assert [message.partition(": ")[0] for message in malformed(spec, "spec")] == [where]


@pytest.mark.parametrize(
    "spec", [{"containers": 1}, {"containers": [1]}, {"containers": [{"resources": [1]}]}, {"volumes": [1]}, {}]
)
def test_other_types_are_left_to_the_api_server(spec: dict[str, Any]) -> None:
    assert list(malformed(spec, "spec")) == []


def test_the_job_is_refused_with_the_field() -> None:
    job = mxjob("digits").v1().workers(1).container("Worker", resources={"requests": {"memory": "1KiB"}}).resource()
    with pytest.raises(InvalidJob) as refused:
        parse_job(job, MXNET)
    expected = "spec.mxReplicaSpecs.Worker.template.spec.containers[0].resources.requests[memory]: '1KiB'"
    assert any(problem.startswith(expected) for problem in refused.value.problems)
    assert plan_invalid(job, MXNET, refused.value.problems, NOW).status


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (2, "2"),
        (0.5, "0.5"),
        ("500m", "0.5"),
        ("250u", "0.00025"),
        ("7n", "0.000000007"),
        ("2k", "2000"),
        ("1.5Gi", "1610612736"),
        ("1Ki", "1024"),
        ("2E", "2000000000000000000"),
        ("1Ei", "1152921504606846976"),
        ("1e3", "1000"),
        ("12E-1", "1.2"),
        (".5", "0.5"),
        ("5.", "5"),
        ("-1", "-1"),
        (1e-07, "0.0000001"),
    ],
)
def test_the_amount(given: Any, value: str) -> None:
    assert quantities.amount(given) == Decimal(value)


@pytest.mark.parametrize("given", ["", "1 Gi", "1mi", "x"])
def test_what_has_no_amount(given: str) -> None:
    with pytest.raises(ValueError, match="is no quantity"):
        quantities.amount(given)
