"""Who owns what: the reference by which Kubernetes deletes a job's objects with the job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def is_owned_by(resource: Mapping[str, Any], uid: str) -> bool:
    """Whether ``resource`` belongs to the job with that uid."""
    references = (resource.get("metadata") or {}).get("ownerReferences") or ()
    return any(r.get("uid") == uid for r in references)
