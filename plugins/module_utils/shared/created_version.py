"""The API version in which an object was created.

A CRD without conversion serves one object in all its versions, so the apiVersion of a response says only how it was
read. The API server notes in ``metadata.managedFields`` who has set which fields, and in which version. Whoever created
the object has set most of them: a controller that patches it afterwards, in another version, sets few.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def created_version(resource: Mapping[str, Any]) -> str:
    """The apiVersion in which ``resource`` was created; its own where nothing is noted."""
    metadata = resource.get("metadata")
    noted = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    entries = [one for one in noted if _is_entry(one)] if isinstance(noted, list) else []
    if not entries:
        return str(resource.get("apiVersion") or "")
    return str(min(entries, key=lambda one: (-_size(one), str(one.get("time") or "")))["apiVersion"])


def reduced(resource: Mapping[str, Any]) -> list[dict[str, str]]:
    """The managedFields from which :func:`created_version` still tells it; none where it is the object's own."""
    version = created_version(resource)
    return [{"apiVersion": version}] if version != resource.get("apiVersion") else []


def _is_entry(one: Any) -> bool:
    return isinstance(one, Mapping) and bool(one.get("apiVersion")) and not one.get("subresource")


def _size(entry: Mapping[str, Any]) -> int:
    return len(json.dumps(entry.get("fieldsV1") or {}, default=str))
