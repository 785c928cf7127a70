"""Owner references, by which the garbage collector deletes a job's objects with the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.controller_reference import controller_of
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
    """The uid of what controls ``resource``; ``None`` where nothing does, and of one in another ``namespace``."""
    metadata = resource.get("metadata") or {}
    if metadata.get("namespace", namespace) != namespace:
        return None
    controller = controller_of(resource)
    return None if controller is None else str(controller.get("uid"))


def belongs_to_predecessor(found: Mapping[str, Any], resource: Mapping[str, Any]) -> bool:
    """Whether ``found`` belongs to a deleted job of the same group, kind and name as the job ``resource``.

    They exist where a job was deleted and created again before the garbage collector has removed its objects.
    """
    metadata = resource["metadata"]
    wanted = (_group(resource["apiVersion"]), resource["kind"], metadata["name"])
    controller = controller_of(found) or {}
    named = (_group(controller.get("apiVersion")), controller.get("kind"), controller.get("name"))
    return named == wanted and controller.get("uid") != metadata["uid"]


def _group(api_version: Any) -> str:
    return str(api_version or "").rpartition("/")[0]
