"""Devices of a pod, such as GPUs, that the kubelet reports as unhealthy (Kubernetes 1.36 or newer).

A container's status has them in ``allocatedResourcesStatus``, by resource: ``nvidia.com/gpu``, or
``claim:<claim>/<request>`` of a DRA driver. The health is the latest one, and may be
of a time after the container's end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Resource = Mapping[str, Any]

LONGEST = 120
"""Characters kept of the driver's words about a device."""


def unhealthy(statuses: Iterable[Resource], container: str) -> str:
    """A clause about the unhealthy devices in the ``statuses`` of a pod's containers, "" where there are none.

    It names one device, of ``container`` if that has one, and counts the others.
    """
    found: dict[str, str] = {}  # the containers of a pod may share a claim
    for status in sorted(statuses, key=lambda one: one.get("name") != container):
        for name, message in _devices(status):
            found.setdefault(name, message)
    if not found:
        return ""
    (name, message), *others = found.items()
    words = f" ({message})" if message else ""
    if others:
        return f"device {name}{words} and {len(others)} more were Unhealthy"
    return f"device {name} was Unhealthy{words}"


def _devices(status: Resource) -> Iterator[tuple[str, str]]:
    """The resource with the device's ID, and what its driver says."""
    for resource in status.get("allocatedResourcesStatus") or ():
        for device in resource.get("resources") or ():
            if device.get("health") == "Unhealthy":
                message = " ".join(str(device.get("message") or "").split())
                short = message if len(message) <= LONGEST else f"{message[: LONGEST - 3]}..."
                yield f"{resource.get('name', '')} {device.get('resourceID', '')}".strip(), short
