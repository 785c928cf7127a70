"""Reduce objects to the fields that the cache keeps and runs get: pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.created_version import reduced
from ansible_collections.dljob.operator.plugins.module_utils.shared.gang_scheduler import ANNOTATION_POD_GROUP
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import OWN_PREFIX
from ansible_collections.dljob.operator.plugins.module_utils.shared.owned_kinds import reduce_fields

Object = dict[str, Any]
Transform = Callable[[Object], Object]

METADATA = (
    "name",
    "namespace",
    "uid",
    "labels",
    "ownerReferences",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "creationTimestamp",
    "resourceVersion",
    "annotations",
)
"""What may be kept of the metadata of an owned object."""


def owned(fields: Mapping[str, Any]) -> Transform:
    """Keep the identity and the owners of an owned object, and those `fields` of the registry of owned kinds."""

    def transform(obj: Object) -> Object:
        return {"metadata": _metadata(obj), **reduce_fields(obj, fields)}

    return transform


def config_map(obj: Object) -> Object:
    """Keep the identity and the data of a ConfigMap."""
    return {"metadata": _metadata(obj), "data": obj.get("data") or {}}


def node(obj: Object) -> Object:
    """Keep the name and the extended resources of a node, which its heartbeats do not change."""
    status = obj.get("status", {})
    quantities = [*status.get("capacity", {}).items(), *status.get("allocatable", {}).items()]
    names = sorted({name for name, count in quantities if "/" in name and count != "0"})
    kept = _pick(obj.get("metadata", {}), ("name", "uid", "resourceVersion"))
    return {"metadata": kept, "resources": names}


def custom(obj: Object) -> Object:
    """Keep a whole custom resource; of its managedFields only the version in which it was created, if it is another."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "managedFields"}
    noted = reduced(obj)
    return {**obj, "metadata": {**metadata, "managedFields": noted} if noted else metadata}


def _metadata(obj: Object) -> Object:
    metadata = obj.get("metadata", {})
    kept = _pick(metadata, METADATA)
    annotations = kept.pop("annotations", None) or {}
    own = {
        key: value for key, value in annotations.items() if key.startswith(OWN_PREFIX) or key == ANNOTATION_POD_GROUP
    }
    if own:
        kept["annotations"] = own
    return kept


def _pick(mapping: Mapping[str, Any], keys: tuple[str, ...]) -> Object:
    return {key: mapping[key] for key in keys if key in mapping}
