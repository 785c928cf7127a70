"""What a job owns: from the engine's snapshot where there is one, from the API server where not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import paths, snapshot
from ansible_collections.dljob.operator.plugins.module_utils.api.transport import Transport
from ansible_collections.dljob.operator.plugins.module_utils.values.constants import LABEL_JOB_UID

Resource = Mapping[str, Any]


def owned_objects(transport: Transport, namespace: str, uid: str) -> tuple[Sequence[Resource], Sequence[Resource]]:
    """(pods, services) that carry the job's uid. At most two requests, none with a snapshot."""
    published = snapshot.current()
    if published is not None and uid in published:
        owned = published[uid]
        return owned.get("Pod", ()), owned.get("Service", ())
    query = {"labelSelector": f"{LABEL_JOB_UID}={uid}"}
    pods = transport.request("GET", paths.collection("v1", "Pod", namespace), query=query)
    services = transport.request("GET", paths.collection("v1", "Service", namespace), query=query)
    return pods.get("items", ()), services.get("items", ())
