"""The memory of a plan does not grow with the replicas of the job: a worker plans four jobs at once."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.parse.parse import parse_job
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.inputs import PlanSettings
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.plan import plan
from ansible_collections.dljob.operator.plugins.module_utils.logic.plan.policies import slices
from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed
from support.builders import MXNET, NOW, Resource, mxjob

BOUND = 60_000_000
"""Bytes at any time while the job is parsed and planned. A plan of 30,000 workers at once needed 1.6 GiB."""
VARIABLES = [{"name": f"VARIABLE_{number}", "value": str(number)} for number in range(3_000)]
"""Of a job whose template is large too: 130 KB, which each pod of a plan has a copy of."""


def small(count: int, flavor: str) -> Resource:
    return mxjob("digits").flavor(flavor).workers(count).resource()


def with_large_template(count: int, flavor: str) -> Resource:
    resource = small(count, flavor)
    replicas = resource["spec"].get("mxReplicaSpecs") or resource["spec"]["replicaSpecs"]
    entries = replicas.values() if isinstance(replicas, dict) else replicas
    for entry in entries:
        entry["template"]["spec"]["containers"][0]["env"] = VARIABLES
    return resource


def largest_accepted(flavor: str) -> int:
    """The largest number of workers that passes validation with the default limits."""

    def passes(count: int) -> bool:
        try:
            return bool(parse_job(small(count, flavor), MXNET))
        except InvalidJob:
            return False

    least, most = 1, 1_000_000
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if passes(middle) else (least, middle - 1)
    return least


@pytest.mark.parametrize("made", [small, with_large_template])
@pytest.mark.parametrize(("flavor", "at_least"), [("v1", 2_000), ("v1alpha1", 19_999)])
def test_the_largest_job_that_is_accepted(flavor: str, at_least: int, made: Callable[[int, str], Resource]) -> None:
    count = largest_accepted(flavor)
    assert count >= at_least
    resource = made(count, flavor)
    settings = PlanSettings(largest_slice=slices.largest_slice(None))
    tracemalloc.start()
    try:
        planned = plan(parse_job(resource, MXNET), MXNET, Observed(), NOW, settings)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert planned.is_partial
    assert planned.pods
    assert peak < BOUND
