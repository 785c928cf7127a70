"""The Routes that expose Services of a job on OpenShift.

This module uses the ``openshift`` client and imports it only when there is a Route to write, so other clusters do not
need it. Without the client, or on a cluster that serves no Routes, the module does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import TIMEOUT, RestClient
from ansible_collections.dljob.operator.plugins.module_utils.logic.ownership import Owner, is_owned_by
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import MERGE_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.delete_options import delete_options
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.observed import Plan


def ensure(api: RestClient, plan: Plan, namespace: str, uid: str, dry_run: bool = False) -> list[str]:
    """Create or update the Routes of ``plan``; delete those of Services that the plan deletes. A Route has the name of
    its Service.

    Returns one sentence per error. It takes one request where the cluster serves no Routes, two where the Route is
    up to date.
    """
    if dry_run or not (plan.routes or plan.stale_routes):
        return []
    try:
        if not _are_served(api):
            return []
        for name in plan.stale_routes:
            present = _read(api, namespace, name)
            if present and is_owned_by(present, Owner(namespace, uid)):
                body = delete_options(present["metadata"]["uid"])
                _client(api).delete(name=name, namespace=namespace, body=body, **_limits(api))
        for route in plan.routes:
            _ensure_one(api, route, namespace, uid)
    except ImportError:
        return []
    except ApiError as e:
        return [f"Route: {e.message}"]
    except Exception as e:  # from the client's many libraries; a missing Route must not fail the training
        return [f"Route: {e}"]
    return []


def _ensure_one(api: RestClient, wanted: Mapping[str, Any], namespace: str, uid: str) -> None:
    name = wanted["metadata"]["name"]
    present = _read(api, namespace, name)
    if present is None:
        _client(api).create(body=dict(wanted), namespace=namespace, **_limits(api))
    elif not is_owned_by(present, Owner(namespace, uid)):
        message = f"{name}: a Route of that name exists and does not belong to this job; delete it"
        raise ApiError(409, "AlreadyExists", message)
    elif not _covers(present["spec"], wanted["spec"]):
        # A merge patch keeps fields that the router or a user has set (a host, a certificate). The API server refuses
        # it where another Route has the name meanwhile, because a UID cannot change.
        body = {**wanted, "metadata": {**wanted["metadata"], "uid": present["metadata"]["uid"]}}
        _client(api).patch(body=body, namespace=namespace, content_type=MERGE_PATCH, **_limits(api))


def _covers(present: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(present, Mapping) and all(_covers(present.get(k), v) for k, v in wanted.items())
    return bool(present == wanted)


def _are_served(api: RestClient) -> bool:
    try:
        api.request("GET", f"/apis/{c.ROUTE_API_VERSION}")
    except ApiError as e:
        if e.status in (403, 404):
            return False
        raise
    return True


def _read(api: RestClient, namespace: str, name: str) -> Mapping[str, Any] | None:
    try:
        return api.request("GET", f"{paths.collection(c.ROUTE_API_VERSION, 'Route', namespace)}/{name}")
    except ApiError as e:
        if e.status == 404:
            return None
        raise


def _client(api: RestClient) -> Any:
    """The client for a write of a Route. Its discovery cache is removed with the connection."""
    from openshift.dynamic import DynamicClient

    client = DynamicClient(api.client, cache_file=str(Path(api.folder) / "discovery.json"))
    return client.resources.get(api_version=c.ROUTE_API_VERSION, kind="Route")


def _limits(api: RestClient) -> dict[str, Any]:
    """The client's option for the seconds of a write, to connect and to answer. Raises ApiError after the deadline."""
    return {"_request_timeout": (min(TIMEOUT, api.check_deadline("the write of a Route")), TIMEOUT)}
