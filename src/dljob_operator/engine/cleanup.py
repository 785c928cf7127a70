"""What `dljob-operator run --install-crds --cleanup-on-exit` takes away again when it is stopped.

Exactly the definitions that this very process has created, told by their UIDs, with the jobs of their kinds and what
those own. A definition that was there before is not touched, and neither are its jobs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from dljob_operator.engine.crds import CRDS, Installed
from dljob_operator.engine.discovery import Resource
from dljob_operator.engine.kube import ApiConnectionError, ApiError, KubeApi

_LOG = logging.getLogger(__name__)
_PAUSE = 0.2
PATIENCE = 120.0
"""Seconds for everything to be gone. The garbage collector notices a new kind only every half a minute, and pods have
their grace period."""


class CleanupIncomplete(Exception):
    """Something to be taken away is still there; the message says what."""


def remove_created(api: KubeApi, installed: Sequence[Installed], patience: float = PATIENCE) -> list[str]:
    """Delete those of `installed` that were created; return the names of those that are still there after all.

    The jobs are deleted first, in the foreground: each stays until all that it owns is gone. The definitions are
    deleted right after, so that no new jobs come, and each of them stays until its last job is gone. So when they are
    gone everything is, and the API server does it even without us.
    """
    created = [one for one in installed if one.created]
    deadline = time.monotonic() + patience
    for one in created:
        if not _is_there(api, one):
            continue  # somebody has deleted it; what has that name since is theirs
        _delete_jobs(api, one, deadline)
        _delete(api, CRDS.item("", one.name), one.uid)
    return [one.name for one in created if not _is_gone(api, one, deadline)]


def _delete_jobs(api: KubeApi, one: Installed, deadline: float) -> None:
    kind = Resource(f"/apis/{one.group}/{one.version}", one.plural, one.namespaced)
    found = _listed(api, kind, deadline)
    if found:
        _LOG.info("cleaning up: deleting %d objects of %s with what they own", len(found), one.name)
    for obj in found:
        metadata = obj["metadata"]
        _delete(api, kind.item(metadata.get("namespace", ""), metadata["name"]), metadata["uid"], "Foreground")


def _listed(api: KubeApi, kind: Resource, deadline: float) -> list[dict[str, Any]]:
    while True:
        try:
            return list(api.get(kind.collection())["items"])
        except ApiError as error:
            if error.status == 404:
                return []
            # a kind that was created a moment ago is served, and not ready to be listed
            if error.status not in (429, 503) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)


def _delete(api: KubeApi, path: str, uid: str, propagation: str = "Background") -> None:
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
        "preconditions": {"uid": uid},
    }
    try:
        api.request("DELETE", path, options)
    except ApiError as error:
        if error.status not in (404, 409):  # gone, or another one of that name, which is not ours
            raise


def _is_there(api: KubeApi, one: Installed) -> bool:
    listed = api.get(CRDS.collection(), {"fieldSelector": f"metadata.name={one.name}"})
    return any(obj["metadata"]["uid"] == one.uid for obj in listed["items"])


def _is_gone(api: KubeApi, one: Installed, deadline: float) -> bool:
    """Wait for the definition's end, by watching it."""
    path, selection = CRDS.collection(), {"fieldSelector": f"metadata.name={one.name}"}
    while True:
        listed = api.get(path, selection)
        if not any(obj["metadata"]["uid"] == one.uid for obj in listed["items"]):
            _LOG.info("cleaned up: %s is gone", one.name)
            return True
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        query = {
            **selection,
            "resourceVersion": listed["metadata"]["resourceVersion"],
            "timeoutSeconds": max(1, int(left)),
        }
        try:
            with api.watch(path, query, left + 5) as stream:
                for event in stream:
                    if event["type"] in ("DELETED", "ERROR"):
                        break
        except ApiConnectionError as error:
            _LOG.debug("the watch of %s broke off: %s", one.name, error)
