"""What a job owns: from the engine's snapshot where there is one, from the API server where not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import cache_snapshot, paths
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import LABEL_JOB_UID

Resource = Mapping[str, Any]


API_VERSIONS = {"Pod": "v1", "Service": "v1", "ConfigMap": "v1", "Deployment": "apps/v1"}
"""The kinds of objects that a job may own."""


def owned_objects(
    api: RestClient, namespace: str, uid: str, kinds: Collection[str]
) -> Mapping[str, Sequence[Resource]]:
    """By kind the objects that carry the job's uid. A request for each of ``kinds``, none with a snapshot."""
    published = cache_snapshot.current()
    if published is not None and uid in published:
        owned = published[uid]
        return {kind: owned.get(kind, ()) for kind in kinds}
    query = {"labelSelector": f"{LABEL_JOB_UID}={uid}"}
    return {
        kind: api.request("GET", paths.collection(API_VERSIONS[kind], kind, namespace), query=query).get("items", ())
        for kind in kinds
    }
