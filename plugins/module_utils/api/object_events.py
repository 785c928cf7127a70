"""Reads the Events about one object. No cache has them: a namespace may have thousands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient

LIMIT = 100
"""Events of one response."""


def events_of(client: RestClient, namespace: str, uid: str, limit: int = LIMIT) -> list[Mapping[str, Any]]:
    """The Events about the object with this ``uid``: one request. Raises :class:`ApiError`."""
    query = {"fieldSelector": f"involvedObject.uid={uid}", "limit": str(limit)}
    found = client.request("GET", paths.collection("v1", "Event", namespace), query=query).get("items") or ()
    return [event for event in found if (event.get("involvedObject") or {}).get("uid") == uid]
