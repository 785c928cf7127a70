"""Server-side apply of one object, like ``kubectl apply --server-side``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import APPLY
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MANAGER
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError


@dataclass(frozen=True)
class Applied:
    """``before`` is ``None`` where the object is new; ``after`` is the API server's response."""

    before: Mapping[str, Any] | None
    after: Mapping[str, Any]

    @property
    def changed(self) -> bool:
        """Whether anything differs except managedFields, resourceVersion and generation."""
        return self.before is None or _content(self.before) != _content(self.after)


def apply(api: RestClient, resource: Mapping[str, Any], dry_run: bool = False) -> Applied:
    """Create or update ``resource``; the API server rejects unknown fields. Raises :class:`ApiError`.

    With ``dry_run`` the API server validates the object and stores nothing; a new object then has a random uid.
    """
    try:
        before = api.request("GET", paths.object_path(resource))
    except ApiError as e:
        if e.status != 404:
            raise
        before = None
    query = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Strict"}
    if dry_run:
        query["dryRun"] = "All"
    return Applied(before, api.request("PATCH", paths.object_path(resource), resource, query, APPLY))


def _content(resource: Mapping[str, Any]) -> dict[str, Any]:
    metadata = resource.get("metadata") or {}
    kept = {k: v for k, v in metadata.items() if k not in ("managedFields", "resourceVersion", "generation")}
    return {**resource, "metadata": kept}
