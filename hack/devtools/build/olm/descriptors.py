"""Descriptors of the fields of a job that a console shows, with the descriptions of their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Manifest = Mapping[str, Any]

_UI = "urn:alm:descriptor:com.tectonic.ui"
_KUBERNETES = "urn:alm:descriptor:io.kubernetes"

SPEC = {
    "cleanPodPolicy": ("Pods to delete at the end", ()),
    "cleanupPodPolicy": ("Pods to delete at the end", ()),
    "runPolicy.cleanPodPolicy": ("Pods to delete at the end", ()),
    "runPolicy.suspend": ("Suspended", (f"{_UI}:booleanSwitch",)),
    "runPolicy.backoffLimit": ("Retries", (f"{_UI}:number",)),
    "runPolicy.activeDeadlineSeconds": ("Deadline in seconds", (f"{_UI}:number",)),
    "runPolicy.ttlSecondsAfterFinished": ("Seconds kept after the end", (f"{_UI}:number",)),
}
STATUS = {
    "state": ("State", (f"{_KUBERNETES}.phase",)),
    "reason": ("Reason", (f"{_KUBERNETES}.phase:reason",)),
    "replicas": ("Replicas", (f"{_UI}:text",)),
    "conditions": ("Conditions", (f"{_KUBERNETES}.conditions",)),
    "startTime": ("Started", (f"{_UI}:text",)),
    "completionTime": ("Ended", (f"{_UI}:text",)),
}
"""Paths below ``spec`` and ``status``, each with a display name and the descriptors of its widget."""


def of(schema: Manifest, part: str, known: Mapping[str, tuple[str, tuple[str, ...]]]) -> list[dict[str, Any]]:
    """The descriptors of those of the ``known`` fields that a kind's schema has below ``part``."""
    found = []
    for path, (title, marks) in known.items():
        field = _field(schema["properties"].get(part, {}), path)
        if field is not None:
            entry = {"path": path, "displayName": title, "description": field["description"]}
            found.append({**entry, "x-descriptors": [*marks]} if marks else entry)
    return found


def _field(schema: Manifest, path: str) -> Manifest | None:
    field: Manifest | None = schema
    for name in path.split("."):
        field = ((field or {}).get("properties") or {}).get(name)
    return field
