"""The Routes that expose Services of a job on OpenShift.

On a cluster that serves no Routes the module does nothing. Nobody watches them, so each is read before it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.api import paths
from ansible_collections.dljob.operator.plugins.module_utils.api.rest_client import RestClient
from ansible_collections.dljob.operator.plugins.module_utils.logic.framework.ownership import Owner, is_owned_by
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import MERGE_PATCH
from ansible_collections.dljob.operator.plugins.module_utils.shared.delete_options import delete_options
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError
from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.plan import Plan


def ensure(api: RestClient, plan: Plan, namespace: str, uid: str, dry_run: bool = False) -> list[str]:
    """Create or update the Routes of ``plan``; delete those of Services that the plan deletes. A Route has the name of
    its Service.

    Returns one sentence per error, since a missing Route must not fail the training. It takes one request where the
    cluster serves no Routes, two where the Route is up to date.
    """
    if dry_run or not (plan.routes or plan.stale_routes):
        return []
    try:
        if not _are_served(api):
            return []
        for name in plan.stale_routes:
            _delete(api, name, namespace, uid)
        for route in plan.routes:
            _ensure_one(api, route, namespace, uid)
    except ApiError as e:
        return [f"Route: {e.message}"]
    return []


def _delete(api: RestClient, name: str, namespace: str, uid: str) -> None:
    present = _read(api, namespace, name)
    if not present or not is_owned_by(present, Owner(namespace, uid)):
        return
    try:
        api.request("DELETE", _path(namespace, name), delete_options(present["metadata"]["uid"]))
    except ApiError as e:
        if e.status != 404:
            raise


def _ensure_one(api: RestClient, wanted: Mapping[str, Any], namespace: str, uid: str) -> None:
    name = wanted["metadata"]["name"]
    present = _read(api, namespace, name)
    if present is None:
        api.request("POST", _path(namespace), wanted)
    elif not is_owned_by(present, Owner(namespace, uid)):
        message = f"{name}: a Route of that name exists and does not belong to this job; delete it"
        raise ApiError(409, "AlreadyExists", message)
    elif not _covers(present["spec"], wanted["spec"]):
        # A merge patch keeps fields that the router or a user has set (a host, a certificate). The API server refuses
        # it where another Route has the name meanwhile, because a UID cannot change.
        body = {**wanted, "metadata": {**wanted["metadata"], "uid": present["metadata"]["uid"]}}
        api.request("PATCH", _path(namespace, name), body, content_type=MERGE_PATCH)


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
        return api.request("GET", _path(namespace, name))
    except ApiError as e:
        if e.status == 404:
            return None
        raise


def _path(namespace: str, name: str = "") -> str:
    """Of a Route, or of all of a namespace."""
    collection = paths.collection(c.ROUTE_API_VERSION, "Route", namespace)
    return f"{collection}/{name}" if name else collection
