"""Kubernetes' Pod Security Standards at the level ``restricted``, as far as a pod of these tests can violate it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

POD: Mapping[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What a template needs besides."""
_VOLUMES = frozenset(
    ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret")
)


def violations(pod: Mapping[str, Any]) -> Iterator[str]:
    """What the admission plugin would object to in a pod's spec, in its own words but shorter."""
    of_pod = pod.get("securityContext") or {}
    for volume in pod.get("volumes") or ():
        if not _VOLUMES & set(volume):
            yield f"volume {volume['name']}"
    for container in (*pod["containers"], *(pod.get("initContainers") or ())):
        own = container.get("securityContext") or {}
        name = container["name"]
        if own.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: allowPrivilegeEscalation != false"
        if "ALL" not in own.get("capabilities", {}).get("drop", ()):
            yield f"{name}: unrestricted capabilities"
        if {**of_pod, **own}.get("runAsNonRoot") is not True:
            yield f"{name}: runAsNonRoot != true"
        if {**of_pod, **own}.get("runAsUser") == 0:
            yield f"{name}: runAsUser=0"
        profile = own.get("seccompProfile") or of_pod.get("seccompProfile") or {}
        if profile.get("type") not in ("RuntimeDefault", "Localhost"):
            yield f"{name}: seccompProfile"


def strict(template: dict[str, Any]) -> dict[str, Any]:
    """The pod template with what it needs to meet the level; its images must not run as root."""
    template["spec"]["securityContext"] = {**POD}
    for container in template["spec"]["containers"]:
        container["securityContext"] = {**CONTAINER}
    return template
