"""What a pod requests, as the scheduler counts it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.pod_requests import pod_requests


def container(restart: str = "", limits: dict[str, Any] | None = None, **requests: Any) -> dict[str, Any]:
    named = {name.replace("gpu", "nvidia.com/gpu"): value for name, value in requests.items()}
    resources = {"requests": named, **({"limits": limits} if limits else {})}
    return {"name": "c", "resources": resources, **({"restartPolicy": restart} if restart else {})}


@pytest.mark.parametrize(
    ("spec", "millionths"),
    [
        ({}, {}),
        ({"containers": None, "initContainers": "x"}, {}),
        ({"containers": [container(cpu="100m", memory="512Mi", gpu=2)]}, [100_000, 500_000, 2_000_000]),
        ({"containers": [container(cpu=1), container(cpu="1.5", memory="1G")]}, [2_500_000, 931_323, 0]),
        ({"containers": [container(limits={"cpu": "2", "nvidia.com/gpu": 1})]}, [2_000_000, 0, 1_000_000]),
        ({"containers": [container(limits={"cpu": "2"}, cpu="1")]}, [1_000_000, 0, 0]),
        # one init container after the other, before the others
        ({"containers": [container(cpu=1)], "initContainers": [container(cpu=3), container(cpu=2)]}, [3_000_000, 0, 0]),
        # a sidecar goes on beside what follows it
        (
            {"containers": [container(cpu=1)], "initContainers": [container("Always", cpu=2), container(cpu=4)]},
            [6_000_000, 0, 0],
        ),
        (
            {"containers": [container(cpu=5)], "initContainers": [container(cpu=4), container("Always", cpu=2)]},
            [7_000_000, 0, 0],
        ),
        ({"containers": [container(cpu=1)], "overhead": {"cpu": "250m"}}, [1_250_000, 0, 0]),
        ({"containers": [container(cpu=1)], "resources": {"requests": {"cpu": "4"}}}, [4_000_000, 0, 0]),
        ({"containers": [container(cpu="many")]}, {}),
        ({"containers": [{"resources": {"requests": {"ephemeral-storage": "1Gi", "pods": 1}}}]}, {}),
    ],
)
def test_requests(spec: dict[str, Any], millionths: Any) -> None:
    if isinstance(millionths, list):
        named = zip(("cpu", "memory", "nvidia.com/gpu"), millionths, strict=True)
        millionths = {name: amount for name, amount in named if amount}
    assert pod_requests(spec) == millionths
