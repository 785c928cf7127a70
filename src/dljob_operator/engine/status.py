"""Write the conditions of `manageStatus: true`, once after each run."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import MERGE_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator.engine.cache.transforms import Object
from dljob_operator.engine.conditions import after_run
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.outcome import JobOutcome


def write_conditions(
    api: KubeApi, api_resource: ApiResource, resource: Object, outcome: JobOutcome, stats: Mapping[str, int]
) -> None:
    """Merge the conditions after a run into the status of `resource`, which may have been deleted meanwhile.

    The role may have written the status too, so this reads it again first.
    """
    metadata = resource["metadata"]
    path = api_resource.item(metadata.get("namespace", ""), metadata["name"])
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        found = api.get(path)
        if found["metadata"]["uid"] != metadata["uid"]:
            return  # the run was for a deleted job of this name
        before = found.get("status", {}).get("conditions") or []
        conditions = after_run(before, ok=outcome.ok, message=outcome.message, stats=stats, now=now)
        api.request(
            "PATCH",
            f"{path}/status",
            {"status": {"conditions": conditions}},
            content_type=MERGE_PATCH,
        )
    except ApiError as error:
        if error.status != 404:
            raise
