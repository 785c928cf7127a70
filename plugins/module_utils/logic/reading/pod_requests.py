"""What a pod requests, as the scheduler counts it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import quantities
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping, maps
from ansible_collections.dljob.operator.plugins.module_utils.values.usage import MILLION, Amounts

CPU, MEMORY = "cpu", "memory"
_UNITS = {MEMORY: Decimal(1024) ** 3}
"""Bytes of a GiB; all others are counted in their own units."""


def pod_requests(spec: Mapping[str, Any]) -> Amounts:
    """Cores, GiB of memory, and extended resources such as GPUs, in millionths.

    Init containers run one after the other before the others, and sidecars among them go on beside the rest. Resources
    of the pod itself replace those of its containers. https://kubernetes.io/docs/concepts/workloads/pods/init-containers/
    """
    running = _sum(maps(spec.get("containers")))
    started: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in maps(spec.get("initContainers")):
        own = _of(container)
        if container.get("restartPolicy") == "Always":
            _add(running, own)
            _add(started, own)
            step = started
        else:
            step = dict(started)
            _add(step, own)
        _raise_to(most, step)
    _raise_to(running, most)
    running |= _amounts(_requested(spec.get("resources")))
    _add(running, _amounts(as_mapping(spec.get("overhead"))))
    return {name: amount for name, amount in running.items() if amount > 0}


def _sum(containers: list[Mapping[str, Any]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in containers:
        _add(total, _of(container))
    return total


def _of(container: Mapping[str, Any]) -> dict[str, int]:
    return _amounts(_requested(container.get("resources")))


def _requested(resources: Any) -> dict[str, Any]:
    """A limit without a request is one."""
    given = as_mapping(resources)
    return {**as_mapping(given.get("limits")), **as_mapping(given.get("requests"))}


def _amounts(quantities_: Mapping[str, Any]) -> dict[str, int]:
    return {
        name: _millionths(name, str(given))
        for name, given in quantities_.items()
        if name in (CPU, MEMORY) or "/" in name
    }


@functools.lru_cache(1024)
def _millionths(name: str, given: str) -> int:
    """0 for what is no quantity."""
    try:
        return round(quantities.amount(given) * MILLION / _UNITS.get(name, 1))
    except ValueError:
        return 0


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        total[name] = max(total.get(name, 0), amount)
