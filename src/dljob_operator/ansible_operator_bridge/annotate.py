"""Write annotations of a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import MERGE_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MANAGER

from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi


def annotate(
    api: KubeApi, api_resource: ApiResource, metadata: Mapping[str, Any], annotations: Mapping[str, str | None]
) -> None:
    """Set the annotations, or remove those that are None, of the job with this `metadata` and of no other of its name.

    Raises as `KubeApi.request`.
    """
    path = api_resource.item(metadata.get("namespace", ""), metadata["name"])
    body = {"metadata": {"annotations": dict(annotations), "uid": metadata["uid"]}}
    api.request("PATCH", path, body, query={"fieldManager": MANAGER}, content_type=MERGE_PATCH)
