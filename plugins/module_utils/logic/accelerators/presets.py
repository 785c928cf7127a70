"""What pods need on the GPU nodes of a cloud, where nobody has said it in a ConfigMap: seed 003's ``cloud`` value.

Paths as the tf-job-operator-chart of the seed's operator had them, each cloud's last ones with volumes (GKE's of
November 2017, Azure's of December 2017). They are for nodes that advertise the alpha name and leave the driver to the
pod. Where a device plugin advertises ``nvidia.com/gpu`` it mounts the driver too; GKE's entry was dropped for that.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    ALPHA_GPU,
    Accelerator,
    HostVolume,
    OperatorConfig,
)

_LIBRARIES = "/usr/local/nvidia/lib64"  # NVIDIA's images have it in their library path
_LIBCUDA = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"

_PRESETS: Mapping[str, Accelerator] = {
    "gke": Accelerator(
        (
            HostVolume("nvidia-libraries", _LIBRARIES, "/home/kubernetes/bin/nvidia/lib"),
            HostVolume("nvidia-debug-tools", "/usr/local/bin/nvidia", "/home/kubernetes/bin/nvidia/bin"),
        )
    ),
    "azure": Accelerator(
        (
            HostVolume("lib", _LIBRARIES, "/usr/lib/nvidia-384"),
            HostVolume("bin", "/usr/local/nvidia/bin", "/usr/lib/nvidia-384/bin"),
            HostVolume("libcuda", _LIBCUDA, _LIBCUDA),
        )
    ),
}


def preset(cloud: str) -> OperatorConfig:
    """The configuration for ``cloud``, an empty one for "" (no cloud)."""
    return OperatorConfig({ALPHA_GPU: _PRESETS[cloud]}, preset=True) if cloud else OperatorConfig()
