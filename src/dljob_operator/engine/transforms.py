"""What of an object is kept in memory and handed to a run: pure functions to a smaller form of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Object = dict[str, Any]
Transform = Callable[[Object], Object]

OWN_ANNOTATIONS = "dljob.operator/"
_METADATA = (
    "name",
    "namespace",
    "uid",
    "labels",
    "ownerReferences",
    "deletionTimestamp",
    "creationTimestamp",
)
_POD_STATUS = (
    *("phase", "reason", "message", "podIP", "startTime"),
    *("conditions", "containerStatuses", "initContainerStatuses"),
)


def pod(obj: Object) -> Object:
    """Keep who a pod is and belongs to, where it runs, and how it and its containers fare."""
    spec = obj.get("spec", {})
    kept = _pick(spec, ("nodeName", "restartPolicy"))
    kept["containers"] = [{"name": container.get("name")} for container in spec.get("containers", [])]
    return {"metadata": _metadata(obj), "spec": kept, "status": _pick(obj.get("status", {}), _POD_STATUS)}


def service(obj: Object) -> Object:
    """Keep who a Service is and belongs to, and what it selects."""
    return {
        "metadata": _metadata(obj),
        "spec": _pick(obj.get("spec", {}), ("clusterIP", "selector", "ports")),
    }


def existence(obj: Object) -> Object:
    """Keep who an object is and belongs to: that it is there is all that counts."""
    return {"metadata": _metadata(obj)}


def config_map(obj: Object) -> Object:
    """Keep who a ConfigMap is and what it says."""
    return {"metadata": _metadata(obj), "data": obj.get("data") or {}}


def node(obj: Object) -> Object:
    """Keep a node's name and the names of the extended resources that it has: its heartbeats change neither."""
    status = obj.get("status", {})
    held = [*status.get("capacity", {}).items(), *status.get("allocatable", {}).items()]
    names = sorted({name for name, count in held if "/" in name and count != "0"})
    kept = _pick(obj.get("metadata", {}), ("name", "uid", "resourceVersion"))
    return {"metadata": kept, "resources": names}


def custom(obj: Object) -> Object:
    """Keep the whole of a custom resource but for the bookkeeping of who wrote which field."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _metadata(obj: Object) -> Object:
    metadata = obj.get("metadata", {})
    kept = _pick(metadata, (*_METADATA, "resourceVersion"))
    annotations = metadata.get("annotations") or {}
    own = {key: value for key, value in annotations.items() if key.startswith(OWN_ANNOTATIONS)}
    if own:
        kept["annotations"] = own
    return kept


def _pick(mapping: Mapping[str, Any], keys: tuple[str, ...]) -> Object:
    return {key: mapping[key] for key in keys if key in mapping}
