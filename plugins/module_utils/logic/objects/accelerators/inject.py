"""Adds to a pod what its accelerators need: volumes of the node, variables, and the cluster's resource names.

The user's settings take precedence: a variable of the same name or a mount at the same path is kept, and volumes keep
their names. Malformed parts of a pod are passed on unchanged, and the API server rejects them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading import accelerator_limits
from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import maps
from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    Accelerator,
    ClusterInfo,
    HostVolume,
)

NAME_LIMIT = 63


def inject(pod: Mapping[str, Any], cluster_info: ClusterInfo) -> Mapping[str, Any]:
    """``pod`` itself where it requests no accelerator, else a copy with what its containers need."""
    if not accelerator_limits.of_pod(pod["spec"]):
        return pod
    copied = copy.deepcopy(dict(pod))
    spec = copied["spec"]
    for container in accelerator_limits.containers(spec):
        for accelerator in _accelerators(accelerator_limits.of_container(container), cluster_info):
            for volume in accelerator.volumes:
                _mount(spec, container, volume)
            _set(container, accelerator)
        _rename(container, cluster_info)
    return copied


def _accelerators(requested: Mapping[str, Any], cluster_info: ClusterInfo) -> list[Accelerator]:
    """The configured accelerators of a container's requests, by the requested name and by the cluster's name."""
    found: dict[str, Accelerator] = {}
    for name in requested:
        real = accelerator_limits.alias(name, cluster_info.advertised)
        for each in (name, real):
            # a preset is for nodes with the alpha name; on others the device plugin mounts the driver, and the preset's
            # paths, which do not exist there, would hide it
            if each in cluster_info.config.accelerators and not (cluster_info.config.preset and each != real):
                found.setdefault(each, cluster_info.config.accelerators[each])
    return list(found.values())


def _mount(spec: dict[str, Any], container: dict[str, Any], volume: HostVolume) -> None:
    mounts = container.get("volumeMounts") or []
    if any(_same_path(m.get("mountPath"), volume.mount_path) for m in maps(mounts)):
        return
    if not (isinstance(mounts, list) and isinstance(spec.get("volumes") or [], list)):
        return
    name = _volume(spec, volume)
    container["volumeMounts"] = [*mounts, {"name": name, "mountPath": volume.mount_path}]


def _volume(spec: dict[str, Any], volume: HostVolume) -> str:
    """The name of the pod's volume for that path: an existing volume, or a new one with an unused name."""
    volumes = spec.get("volumes") or []
    taken = {str(v.get("name")): v.get("hostPath") for v in maps(volumes)}
    name, number = volume.name, 1
    while name in taken:
        source = taken[name]
        if isinstance(source, Mapping) and _same_path(source.get("path"), volume.host_path):
            return name
        number += 1
        suffix = f"-{number}"
        name = volume.name[: NAME_LIMIT - len(suffix)].rstrip("-") + suffix
    spec["volumes"] = [*volumes, {"name": name, "hostPath": {"path": volume.host_path}}]
    return name


def _set(container: dict[str, Any], accelerator: Accelerator) -> None:
    own = container.get("env") or []
    taken = {str(e.get("name")) for e in maps(own)}
    # first: the container's own variables may refer to them as $(NAME)
    added = [{"name": v.name, "value": v.value} for v in accelerator.variables if v.name not in taken]
    if added and isinstance(own, list):
        container["env"] = [*added, *own]


def _rename(container: dict[str, Any], cluster_info: ClusterInfo) -> None:
    """Request the cluster's resource names. An extended resource needs a limit, and a request must equal it."""
    wanted = accelerator_limits.limits_of(container, cluster_info.advertised)
    for old in accelerator_limits.of_container(container):
        new = accelerator_limits.alias(old, cluster_info.advertised)
        if new == old:
            continue
        resources = container["resources"]
        requests = resources.get("requests")
        if isinstance(requests, Mapping) and (old in requests or new in requests):
            resources["requests"] = {**_without(requests, old), new: wanted[new]}
        resources["limits"] = {**_without(resources.get("limits"), old), new: wanted[new]}


def _without(resources: Any, name: str) -> dict[str, Any]:
    return {key: value for key, value in resources.items() if key != name} if isinstance(resources, Mapping) else {}


def _same_path(one: object, other: str) -> bool:
    return isinstance(one, str) and (one.rstrip("/") or "/") == (other.rstrip("/") or "/")
