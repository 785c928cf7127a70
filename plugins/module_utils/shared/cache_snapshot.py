"""The objects from the engine's cache, passed to the reconcile in memory.

The engine publishes the objects that the jobs of an Ansible run own before the play starts, so that the reconcile reads
nothing from the API server. Without a snapshot (ansible-playbook, ansible-runner without the engine) the reconcile
reads the objects itself.

Shape: ``{job uid: {"Pod": [object, ...], "Service": [object, ...], ...}}`` by kind. The objects are dictionaries in the
API's format, possibly reduced to the fields that the collection's ``logic/observe/observed_state.py`` reads.

A second part, the cluster info, belongs to no job: ``{"config_map": name, "config_maps": [ConfigMap, ...], "resources":
[name, ...] or None}``. It has the existing ConfigMaps of that name in order of precedence, and the names of the
extended resources on the nodes, ``None`` where the engine may not list nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Owned = Mapping[str, Sequence[Mapping[str, Any]]]
Published = Mapping[str, Any]

_published: Mapping[str, Owned] | None = None
_cluster_info: Published | None = None


def publish(objects: Mapping[str, Owned] | None, cluster_info: Published | None = None) -> None:
    """Set the snapshot of this process and of every process forked from it; ``None`` removes it."""
    global _published, _cluster_info
    _published, _cluster_info = objects, cluster_info


def current() -> Mapping[str, Owned] | None:
    """The published snapshot, or ``None`` where there is none."""
    return _published


def cluster_info() -> Published | None:
    """The published cluster info, or ``None`` where there is none."""
    return _cluster_info
