"""The versions of everything that is built here. A change of a version changes the cache keys."""

from __future__ import annotations

KUBERNETES = "v1.34.4"
KIND = "v0.30.0"
HELM = "v3.19.2"
GO_MINIMUM = (1, 25)

ENGINE_PACKAGES = ("docker.io", "containerd", "runc", "tini", "iptables", "nftables", "iproute2")
BUILD_PACKAGES = ("mmdebstrap", "zstd")
NODE_PACKAGES = (
    # the packages of kind's base image, with Debian's container runtime and network plugins instead of kind's builds,
    # and without the storage clients (NFS, iSCSI), which are not used here
    "systemd", "conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod", "libseccomp2",
    "bash", "ca-certificates", "curl", "jq", "procps", "containerd", "runc", "crun", "containernetworking-plugins",
    "socat",
)  # fmt: skip
KUBE_PROXY_PACKAGES = (
    "iptables",
    "nftables",
    "conntrack",
    "libc6",
    "base-files",
    "kmod",
    "coreutils",
    "bash",
    "dash",
)
REGISTRY_PACKAGES = ("docker-registry", "libc6")
OFFICIAL_REGISTRY_IMAGE = "registry:2"

MIRRORED_REGISTRIES = ("docker.io", "gcr.io", "quay.io", "ghcr.io", "registry.k8s.io")
