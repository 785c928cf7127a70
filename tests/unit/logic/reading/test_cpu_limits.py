"""How many processors a container may use, by its CPU limit."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import cpu_limits


@pytest.mark.parametrize(
    ("resources", "processors"),
    [
        ({"limits": {"cpu": 2}}, 2),
        ({"limits": {"cpu": "2500m"}}, 3),
        ({"limits": {"cpu": "100m"}}, 1),
        ({"limits": {"cpu": 1.5}}, 2),
        ({"limits": {"cpu": "1e1", "memory": "1Gi"}}, 10),
        ({"limits": {"cpu": 2, "nvidia.com/gpu": 0}}, 2),
        ({"limits": {"cpu": 0}}, None),
        ({"limits": {"cpu": "-2"}}, None),
        ({"limits": {"memory": "1Gi"}}, None),
        ({"requests": {"cpu": 2}}, None),
        ({"limits": {"cpu": 2, "nvidia.com/gpu": 1}}, None),
        ({"limits": {"cpu": 2}, "requests": {"amd.com/gpu": 1}}, None),
        ({"limits": {"cpu": 2}, "claims": [{"name": "gpu"}]}, None),
        ({"limits": {"cpu": "many"}}, None),
        ({"limits": {"cpu": True}}, None),
        ({"limits": {"cpu": [2]}}, None),
        ({"limits": ["cpu"]}, None),
        ("2", None),
        (None, None),
    ],
)
def test_processors_of_a_container_without_devices(resources: Any, processors: int | None) -> None:
    """By its CPU limit. A template is not validated yet."""
    assert cpu_limits.whole_processors({"name": "pytorch", "resources": resources}) == processors
