"""Accelerator presets of clouds, used where there is no ConfigMap, like the ``cloud`` value of tf-operator's chart.

The paths are those of the tf-job-operator-chart, for each cloud the last ones with volumes (GKE: November 2017, Azure:
December 2017). They are for nodes that advertise the alpha name and leave it to the pod to mount the driver. Where a
device plugin advertises ``nvidia.com/gpu``, the plugin mounts the driver, so the chart dropped GKE's entry.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.dljob.operator.plugins.module_utils.values.accelerators import (
    ALPHA_GPU,
    Accelerator,
    HostVolume,
    OperatorConfig,
)

_LIBRARIES = "/usr/local/nvidia/lib64"  # on the library path of NVIDIA's images
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
