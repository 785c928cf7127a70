"""The Event object, which ``kubectl describe`` shows below the object that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MANAGER

_LONGEST_NAME = 200
"""Characters of the object's name in the Event's; a suffix follows, and the API server's limit is 253."""


@dataclass(frozen=True, slots=True)
class EventNote:
    """What an Event says: ``type`` is Normal or Warning, ``reason`` one word in CamelCase."""

    type: str
    reason: str
    message: str


def event_of(resource: Mapping[str, Any], note: EventNote, now: datetime, suffix: str = "") -> dict[str, Any]:
    """A new Event about ``resource`` in its namespace, or in ``default`` for one without a namespace.

    Its name is the object's with ``suffix``; by default the API server chooses a suffix.
    """
    metadata = resource["metadata"]
    prefix = metadata["name"][:_LONGEST_NAME]
    name = {"name": f"{prefix}.{suffix}"} if suffix else {"generateName": f"{prefix}."}
    present = {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion") if key in metadata}
    moment = timestamp(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {**name, "namespace": metadata.get("namespace") or "default"},
        "involvedObject": {"apiVersion": resource["apiVersion"], "kind": resource["kind"], **present},
        "type": note.type,
        "reason": note.reason,
        "message": note.message,
        "source": {"component": MANAGER},
        "reportingComponent": MANAGER,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def timestamp(now: datetime) -> str:
    """A time in UTC as the API writes it in Events, in whole seconds."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
