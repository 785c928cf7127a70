"""A simulated GPU: an extended resource advertised in the real node's status, as Kubernetes documents it."""

from __future__ import annotations

import json
import re

from devtools.testbed.base.errors import ClusterError
from devtools.testbed.cluster.kindcluster import Kind

RESOURCE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?")
ALPHA_NAME = "alpha.kubernetes.io/nvidia-gpu"
"""The GPU resource that manifests of the early operators request."""


def status_patch(resource: str, count: int) -> str:
    """A merge patch of a node's status; the kubelet copies the capacity to the allocatable resources."""
    if not RESOURCE.fullmatch(resource):
        raise ClusterError(
            f"--resource {resource}: not the name of an extended resource",
            "use DOMAIN/NAME, e.g. nvidia.com/gpu",
        )
    if count < 0:
        raise ClusterError(f"{count}: a count cannot be negative")
    value = {resource: str(count) if count else None}
    return json.dumps({"status": {"capacity": value, "allocatable": value}})


def advertise(kind: Kind, resource: str, count: int) -> None:
    """Set the count and wait until the resource is allocatable. 0 removes the resource."""
    node = kind.settings.node
    kind.ctl("patch", "node", node, "--subresource=status", "--type=merge", "-p", status_patch(resource, count))
    if count:
        path = resource.replace(".", "\\.")
        kind.ctl("wait", f"node/{node}", f"--for=jsonpath={{.status.allocatable.{path}}}={count}", "--timeout=60s")
