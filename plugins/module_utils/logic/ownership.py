"""Owner references, by which the garbage collector deletes a job's objects with the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values import constants as c
from ansible_collections.dljob.operator.plugins.module_utils.values.job import DLJob


def owner_reference(job: DLJob) -> dict[str, Any]:
    """The controller reference to ``job``."""
    return {
        "apiVersion": job.api_version,
        "kind": job.kind,
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def labels(job_uid: str) -> dict[str, str]:
    """The labels of every object of a job. Engines watch by the first, reads without an engine select by the other."""
    return {c.LABEL_MANAGED_BY: c.MANAGER, c.LABEL_JOB_UID: job_uid}


@dataclass(frozen=True, slots=True)
class Owner:
    """A job as the owner of objects."""

    namespace: str
    uid: str


def is_owned_by(resource: Mapping[str, Any], owner: Owner) -> bool:
    """Whether ``owner`` controls ``resource``.

    An owner reference alone proves nothing: a user who may create pods may write any uid into it. An object of another
    namespace is never the job's, and neither is one that the job does not control.
    """
    return controller_uid(resource, owner.namespace) == owner.uid


def controller_uid(resource: Mapping[str, Any], namespace: str) -> str | None:
    """The uid of what controls ``resource``; ``None`` where nothing does, and of one in another ``namespace``.

    The API server accepts one controller at most.
    """
    metadata = resource.get("metadata") or {}
    if metadata.get("namespace", namespace) != namespace:
        return None
    references = metadata.get("ownerReferences") or ()
    return next((str(one.get("uid")) for one in references if one.get("controller") is True), None)


def belongs_to_predecessor(resource: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    """Whether ``resource`` belongs to a deleted job of the same group, kind and name as ``job``.

    They exist where a job was deleted and created again before the garbage collector has removed its objects.
    """
    metadata = job["metadata"]
    wanted = (_group(job["apiVersion"]), job["kind"], metadata["name"])
    references = (resource.get("metadata") or {}).get("ownerReferences") or ()
    return any(
        (_group(r.get("apiVersion", "")), r.get("kind"), r.get("name")) == wanted and r.get("uid") != metadata["uid"]
        for r in references
        if r.get("controller")
    )


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
