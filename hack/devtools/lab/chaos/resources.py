"""The resources of the API server that a run deals with."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from devtools.testbed.jobs import JobKind, read_kinds, stored


@dataclass(frozen=True)
class Resource:
    """A resource that is no kind of job."""

    api: str
    """``v1``, or a group and its version."""
    plural: str

    @property
    def group(self) -> str:
        return self.api.rpartition("/")[0]

    def collection(self, namespace: str) -> str:
        """The path of the objects in a namespace."""
        return f"/{'apis' if self.group else 'api'}/{self.api}/namespaces/{namespace}/{self.plural}"


PODS, BATCH_JOBS = Resource("v1", "pods"), Resource("batch/v1", "jobs")
OWNED = (
    PODS,
    *(Resource("v1", plural) for plural in ("services", "configmaps", "secrets", "serviceaccounts")),
    BATCH_JOBS,
    *(Resource("rbac.authorization.k8s.io/v1", plural) for plural in ("roles", "rolebindings")),
)
"""What the jobs of a run own: none of them has an autoscaler, a TensorBoard (a Deployment) or a PodGroup."""

_kinds = functools.cache(read_kinds)


def watched() -> tuple[JobKind, ...]:
    """Each kind of job once, in the version that is stored: two versions of it are the same objects."""
    return stored(_kinds())


def collection_of(manifest: Mapping[str, Any], namespace: str) -> str:
    """The path of the jobs of this kind, in the version of the manifest."""
    wanted = (manifest["apiVersion"], manifest["kind"])
    return next(kind for kind in _kinds() if (kind.api_version, kind.kind) == wanted).collection(namespace)
