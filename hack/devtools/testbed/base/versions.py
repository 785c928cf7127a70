"""The versions of everything that is built or pulled. A change of a version changes the cache keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Kubernetes:
    """One minor version of Kubernetes that a cluster can have."""

    version: str
    """What is compiled where no node image can be pulled. A change needs ``python -m devtools.testbed.cluster pin``."""
    node_image: str
    """kind's own node image: kind's release notes list those that belong to a release."""


KUBERNETES: Mapping[str, Kubernetes] = {
    "1.37": Kubernetes(
        "v1.37.2",
        "kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5",
    ),
    "1.36": Kubernetes(
        "v1.36.3",
        "kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed",
    ),
    "1.35": Kubernetes(
        "v1.35.4",
        "kindest/node:v1.35.8@sha256:07b2536e30b803ed61d1677a79df6115f798ce64c80f9e22f6ed45afd09323c0",
    ),
    "1.34": Kubernetes(
        "v1.34.4",
        "kindest/node:v1.34.11@sha256:44e222ee2132dab25ff87301682f89eb82c7880ea3a1bf543bfe9708fd08d67d",
    ),
}
"""The choices of ``K8S``, by minor version. `go list -m -versions k8s.io/kubernetes` names the patch
versions: the Go proxy serves those of some months ago and older."""
DEFAULT_KUBERNETES = "1.37"
KIND = "v0.33.0"
CONTAINERD = "v2.4.2"
"""The newest that the Go proxy serves: Kubernetes 1.38 needs containerd 2, and each one the containerd of its time."""
HELM = "v3.22.0"
KUEUE = "v0.19.2"
VOLCANO = "v1.15.1"
GO_MINIMUM = (1, 26)

OFFICIAL_REGISTRY_IMAGE = "registry:2"
MIRRORED_REGISTRIES = ("docker.io", "gcr.io", "quay.io", "ghcr.io", "registry.k8s.io")
