"""What a pod requests, as the scheduler counts it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import quantities
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_mapping, maps
from ansible_collections.dljob.operator.plugins.module_utils.values.usage import MILLION, Amounts

CPU, MEMORY = "cpu", "memory"
_UNITS = {MEMORY: Decimal(1024) ** 3}
"""Bytes of a GiB; all others are counted in their own units."""
Quantities = Mapping[str, Decimal]
"""By resource."""


def pod_requests(spec: Mapping[str, Any]) -> Amounts:
    """Cores, GiB of memory, and extended resources such as GPUs, in millionths.

    Init containers run one after the other before the others, and sidecars among them go on beside the rest. Resources
    of the pod itself replace those of its containers. https://kubernetes.io/docs/concepts/workloads/pods/init-containers/
    """
    running: Quantities = {}
    for container in maps(spec.get("containers")):
        running = summed(running, _amounts(requested(container)))
    started: Quantities = {}
    most: Quantities = {}
    for container in maps(spec.get("initContainers")):
        own = _amounts(requested(container))
        with_own = summed(started, own)
        most = largest(most, with_own)
        if container.get("restartPolicy") == "Always":
            started, running = with_own, summed(running, own)
    whole = {**largest(running, most), **_amounts(requested(spec))}
    total = summed(whole, _amounts(as_mapping(spec.get("overhead"))))
    return {
        name: round(amount * MILLION / _UNITS.get(name, 1))
        for name, amount in total.items()
        if amount > 0 and (name in (CPU, MEMORY) or "/" in name)
    }


def requested(container: Mapping[str, Any]) -> dict[str, Any]:
    """The requests of a container; for resources without one its limits, as the API server sets them."""
    resources = as_mapping(container.get("resources"))
    return {**as_mapping(resources.get("limits")), **as_mapping(resources.get("requests"))}


def summed(one: Quantities, other: Quantities) -> Quantities:
    """The sum."""
    return {name: one.get(name, Decimal()) + other.get(name, Decimal()) for name in {**one, **other}}


def largest(one: Quantities, other: Quantities) -> Quantities:
    """The larger one of each."""
    return {name: max(one.get(name, Decimal()), other.get(name, Decimal())) for name in {**one, **other}}


def _amounts(given: Mapping[str, Any]) -> Quantities:
    """Without what is no quantity."""
    return {name: quantities.amount(value) for name, value in given.items() if quantities.is_quantity(value)}
