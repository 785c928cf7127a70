"""Which accelerators a pod's containers ask for, and by which name the cluster has them.

An accelerator is any resource called DOMAIN/NAME: Kubernetes' own that pods can ask for have no domain, but for the
alpha GPU of its first years.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import ALPHA_GPU, GPU

Quantity = Any
"""As the user wrote it: 4 or "4"."""


def is_accelerator(resource: object) -> bool:
    """Whether a resource of that name is a device and not cpu, memory or the like."""
    return isinstance(resource, str) and "/" in resource


def containers(spec: Mapping[str, Any]) -> Iterator[Any]:
    """All containers of a pod spec, those that only initialise it included. What is none the API server refuses."""
    for field in ("initContainers", "containers"):
        yield from maps(spec.get(field))


def maps(listed: Any) -> list[Any]:
    """The maps in a list that a user wrote; none where it is no list."""
    return [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []


def of_container(container: Mapping[str, Any]) -> dict[str, Quantity]:
    """Accelerator to how many of it; a request without a limit counts as one, since devices cannot be overcommitted."""
    resources = container.get("resources")
    held = [resources.get(field) for field in ("requests", "limits")] if isinstance(resources, Mapping) else []
    asked = {name: count for one in held if isinstance(one, Mapping) for name, count in one.items()}
    return {name: count for name, count in asked.items() if is_accelerator(name) and str(count) != "0"}


def of_pod(spec: Mapping[str, Any]) -> frozenset[str]:
    """The accelerators that any container of a pod spec asks for."""
    return frozenset(name for container in containers(spec) for name in of_container(container))


def alias(resource: str, advertised: Collection[str] | None) -> str:
    """The name by which the cluster has ``resource``: another one only where no node has it and some have that.

    ``advertised`` are the names on the nodes, ``None`` where they are not known.
    """
    if resource == ALPHA_GPU and advertised is not None and GPU in advertised and ALPHA_GPU not in advertised:
        return GPU
    return resource


def limits_of(container: Mapping[str, Any], advertised: Collection[str] | None = None) -> dict[str, Quantity]:
    """What a container asks for under the cluster's names; where it does so under both, what it wrote under those."""
    asked = of_container(container)
    renamed = {alias(name, advertised): count for name, count in asked.items()}
    return renamed | {name: count for name, count in asked.items() if name in renamed}


def gpu_limits(spec: Mapping[str, Any], advertised: Collection[str] | None = None) -> dict[str, dict[str, Quantity]]:
    """``{container: {accelerator: count}}`` of a pod spec, under the cluster's names; others are left out."""
    found = {str(one.get("name", "")): limits_of(one, advertised) for one in containers(spec)}
    return {name: limits for name, limits in found.items() if limits}


def advertised(nodes: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The accelerators that some of these Node objects has, be they free or not."""
    return frozenset(
        name
        for node in nodes
        for field in ("capacity", "allocatable")
        for name, count in ((node.get("status") or {}).get(field) or {}).items()
        if is_accelerator(name) and str(count) != "0"
    )
