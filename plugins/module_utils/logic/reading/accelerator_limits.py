"""Which accelerators a pod's containers request, and under which name the cluster advertises them.

An accelerator is any resource called DOMAIN/NAME: Kubernetes' own resources have no domain, except the alpha GPU of
releases before 1.10.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import maps
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import ALPHA_GPU, GPU

Quantity = Any
"""As in the manifest: 4 or "4"."""


def is_accelerator(resource: object) -> bool:
    """Whether a resource of that name is a device, unlike cpu and memory."""
    return isinstance(resource, str) and "/" in resource


def containers(spec: Mapping[str, Any]) -> Iterator[Any]:
    """All containers and init containers of a pod spec, without malformed ones, which the API server rejects."""
    for field in ("initContainers", "containers"):
        yield from maps(spec.get(field))


def of_container(container: Mapping[str, Any]) -> dict[str, Quantity]:
    """Accelerators and their counts. A request without a limit counts too, since devices cannot be overcommitted."""
    resources = container.get("resources")
    if not resources:
        return {}
    given = [resources.get(field) for field in ("requests", "limits")] if isinstance(resources, Mapping) else []
    requested = {name: count for one in given if isinstance(one, Mapping) for name, count in one.items()}
    return {name: count for name, count in requested.items() if is_accelerator(name) and str(count) != "0"}


def of_pod(spec: Mapping[str, Any]) -> frozenset[str]:
    """The accelerators that the containers of a pod spec request."""
    return frozenset(name for container in containers(spec) for name in of_container(container))


def alias(resource: str, advertised: Collection[str] | None) -> str:
    """The cluster's name of ``resource``: nvidia.com/gpu for the alpha name, where nodes advertise only the former.

    ``advertised`` are the names on the nodes, ``None`` where they are not known.
    """
    if resource == ALPHA_GPU and advertised is not None and GPU in advertised and ALPHA_GPU not in advertised:
        return GPU
    return resource


def limits_of(container: Mapping[str, Any], advertised: Collection[str] | None = None) -> dict[str, Quantity]:
    """A container's accelerators under the cluster's names. A count under the cluster's name takes precedence."""
    requested = of_container(container)
    renamed = {alias(name, advertised): count for name, count in requested.items()}
    return renamed | {name: count for name, count in requested.items() if name in renamed}


def gpu_limits(spec: Mapping[str, Any], advertised: Collection[str] | None = None) -> dict[str, dict[str, Quantity]]:
    """``{container: {accelerator: count}}`` of a pod spec, under the cluster's names; other containers are left out."""
    found = {str(one.get("name", "")): limits_of(one, advertised) for one in containers(spec)}
    return {name: limits for name, limits in found.items() if limits}


def advertised(nodes: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The accelerators that these Node objects advertise, whether in use or not."""
    return frozenset(
        name
        for node in nodes
        for field in ("capacity", "allocatable")
        for name, count in ((node.get("status") or {}).get(field) or {}).items()
        if is_accelerator(name) and str(count) != "0"
    )
