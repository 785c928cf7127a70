"""What the engine's watch already knows, handed to the reconcile in memory.

The embedded engine forks a child per run. Before the play starts the child publishes the objects that the jobs of the
run own, so that the reconcile reads nothing from the API server. Without a snapshot (ansible-playbook, a cold
ansible-runner) the reconcile reads for itself.

Shape: ``{job uid: {"Pod": [object, ...], "Service": [object, ...], ...}}`` by kind; the objects are plain dictionaries
in the API's own form, possibly trimmed to the fields that :mod:`..logic.observe` reads.

Beside them stands what belongs to no job, the cluster_info: ``{"config_map": name, "config_maps": [ConfigMap, ...],
"resources": [name, ...] or None}``, the ConfigMaps of that name that there are, the most important one first, and the
names of extended resources on the nodes, ``None`` where the engine may not see these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Owned = Mapping[str, Sequence[Mapping[str, Any]]]
Published = Mapping[str, Any]

_published: Mapping[str, Owned] | None = None
_cluster_info: Published | None = None


def publish(objects: Mapping[str, Owned] | None, cluster_info: Published | None = None) -> None:
    """Make ``objects`` the snapshot of this process and of every process forked from it; ``None`` takes it back."""
    global _published, _cluster_info
    _published, _cluster_info = objects, cluster_info


def current() -> Mapping[str, Owned] | None:
    """The published snapshot, or ``None`` where there is no watch to take one from."""
    return _published


def cluster_info() -> Published | None:
    """What the engine knows of the cluster besides the jobs, or ``None`` where it must be asked for."""
    return _cluster_info
