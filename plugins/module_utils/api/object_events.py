"""Reads the Events about one object. No cache has them: a namespace may have thousands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.api.steps import Steps
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import ApiRequest

LIMIT = 100
"""Events of one response."""


def events_of(namespace: str, uid: str, limit: int = LIMIT) -> Steps[list[Mapping[str, Any]]]:
    """The Events about the object with this ``uid``: one request. Raises :class:`ApiError`."""
    query = {"fieldSelector": f"involvedObject.uid={uid}", "limit": str(limit)}
    found = yield ApiRequest("GET", paths.collection("v1", "Event", namespace), query=query)
    return [event for event in found.get("items") or () if (event.get("involvedObject") or {}).get("uid") == uid]
