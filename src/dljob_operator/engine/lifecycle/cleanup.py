"""Delete what `dljob-operator run --install-crds --cleanup-on-exit` has created, when it stops.

This deletes exactly the definitions that this process has created, identified by their UIDs, with the jobs of their
kinds and the objects that those own. Definitions that existed before stay, with their jobs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi
from dljob_operator.engine.lifecycle.crds import CRDS, Installed

_LOG = logging.getLogger(__name__)
_PAUSE = 0.2
TIMEOUT = 120.0
"""Seconds for all deletions. The garbage collector discovers new kinds only every 30 seconds, and pods have their grace
period."""


class CleanupIncomplete(Exception):
    """Some definitions still exist after the timeout; the message names them."""


def remove_created(api: KubeApi, installed: Sequence[Installed], timeout: float = TIMEOUT) -> list[str]:
    """Delete those of `installed` that were created; return the names of those that still exist after the timeout.

    The jobs are deleted first, in the foreground: each remains until the API server has deleted all its owned objects.
    The definitions are deleted right after, so that no new jobs can be created; each remains until its last job is
    gone. The API server completes all this even if this process ends.
    """
    created = [one for one in installed if one.created]
    deadline = time.monotonic() + timeout
    for one in created:
        if not _exists(api, one):
            continue  # it was deleted; a definition that has the name now is not ours
        _delete_jobs(api, one, deadline)
        api.delete(CRDS.item("", one.name), one.uid)
    return [one.name for one in created if not _wait_deleted(api, one, deadline)]


def _delete_jobs(api: KubeApi, one: Installed, deadline: float) -> None:
    kind = ApiResource(f"/apis/{one.group}/{one.version}", one.plural, one.namespaced)
    found = _list_objects(api, kind, deadline)
    if found:
        _LOG.info("cleanup: deleting objects and what they own", extra=logs.fields(crd=one.name, objects=len(found)))
    for obj in found:
        metadata = obj["metadata"]
        api.delete(kind.item(metadata.get("namespace", ""), metadata["name"]), metadata["uid"], "Foreground")


def _list_objects(api: KubeApi, kind: ApiResource, deadline: float) -> list[dict[str, Any]]:
    while True:
        try:
            return list(api.list_objects(kind.collection())["items"])
        except ApiError as error:
            if error.status == 404:
                return []
            # the API server cannot list a kind yet that was created a moment ago
            if error.status not in (429, 503) or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)


def _exists(api: KubeApi, one: Installed) -> bool:
    listed = api.get(CRDS.collection(), {"fieldSelector": f"metadata.name={one.name}"})
    return any(obj["metadata"]["uid"] == one.uid for obj in listed["items"])


def _wait_deleted(api: KubeApi, one: Installed, deadline: float) -> bool:
    """Watch the definition until it is deleted; return False after the deadline."""
    path, selection = CRDS.collection(), {"fieldSelector": f"metadata.name={one.name}"}
    while True:
        listed = api.get(path, selection)
        if not any(obj["metadata"]["uid"] == one.uid for obj in listed["items"]):
            _LOG.info("cleanup: CustomResourceDefinition deleted", extra=logs.fields(crd=one.name))
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
            _LOG.debug("watch interrupted", extra=logs.fields(resource=one.name, error=error))
