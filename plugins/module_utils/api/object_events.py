"""Reads the Events on an object: what another controller or the kubelet reports there and in no status.

No engine watches Events, of which a cluster has more than of anything else. A reconcile reads those of a few objects,
and only where something does not start.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.logic.policies import pod_creation
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Observed

MOST = 50
"""Events of one response. The API server keeps them for an hour, and a controller repeats one as a count."""


def events_of(client: RestClient, namespace: str, uid: str, limit: int = MOST) -> list[Mapping[str, Any]]:
    """The Events on the object of this uid, in no order, ``limit`` of them at most: one request.

    Raises :class:`ApiError` where the API server does not return them, for example without the permission.
    """
    query = {"fieldSelector": f"involvedObject.uid={uid}", "limit": str(limit)}
    listed = client.request("GET", paths.collection("v1", "Event", namespace), query=query)
    return list(listed.get("items") or ())


def explain_missing_pods(
    client: RestClient, job: DLJob, observed: Observed, now: datetime
) -> tuple[Observed, tuple[str, ...]]:
    """``observed`` with why batch Jobs of ``job`` have had no pod for some seconds: one request for each such Job.

    The second part is what the API server denied, for the operator's log.
    """
    causes: dict[str, str] = {}
    denied: list[str] = []
    for pod in pod_creation.lacking(job, observed, now):
        if pod.batch_job is None:
            continue
        try:
            causes[pod.batch_job.uid] = pod_creation.cause(events_of(client, job.namespace, pod.batch_job.uid))
        except ApiError as e:
            causes[pod.batch_job.uid] = ""
            denied.append(e.message)
    return (pod_creation.explained(job, observed, causes) if causes else observed), tuple(denied)
