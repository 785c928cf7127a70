"""Watch the operator's ConfigMap and the extended resources of the nodes.

Each run gets both, so that a pod that requests an accelerator costs no read. RBAC may forbid either: the engine logs
that once, and runs work without it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.names import CONFIG_MAP

from dljob_operator import logs
from dljob_operator.engine.cache import transforms
from dljob_operator.engine.cache.informer import Informer, WatchSource
from dljob_operator.engine.cache.predicates import Change, uid_of
from dljob_operator.engine.discovery import CONFIG_MAPS, NODES
from dljob_operator.engine.kube import KubeApi

_LOG = logging.getLogger(__name__)


class ClusterInfoWatcher:
    """Watches the ConfigMap in `namespaces`, the most important first, and all nodes.

    An informer's thread calls `changed` when the data of a ConfigMap changes. Changes of nodes requeue no job, because
    the resource requests of an existing pod cannot change.
    """

    def __init__(self, api: KubeApi, namespaces: Sequence[str], changed: Callable[[], None]) -> None:
        self._changed = changed
        self._resources_of: dict[str, list[str]] = {}  # the extended resources of each node, by the node's UID
        self._nodes_with: Counter[str] = Counter()  # the number of nodes by extended resource
        self._resources: list[str] = []
        self._config_maps = [
            Informer(api, _config_map_in(namespace), self._config_map_changed) for namespace in namespaces
        ]
        without = "; alpha resource names are not replaced"
        nodes = WatchSource("nodes", lambda: NODES, transforms.node, optional=True, without=without)
        self._nodes = Informer(api, nodes, self._node_changed)

    @property
    def informers(self) -> list[Informer]:
        return [*self._config_maps, self._nodes]

    def snapshot(self) -> dict[str, Any]:
        """Return `{"config_map": name, "config_maps": [most important first], "resources": [names] or None}`."""
        return {
            "config_map": CONFIG_MAP,
            "config_maps": [
                {"metadata": one["metadata"], "data": one["data"]}
                for informer in self._config_maps
                for one in informer.store.all()
            ],
            "resources": None if self._nodes.missing_now else self._resources,
        }

    def _node_changed(self, change: Change) -> None:
        """Update the resources from this change alone: a cluster may have thousands of nodes."""
        if change.old is not None:
            self._nodes_with.subtract(self._resources_of.pop(uid_of(change.old), ()))
        if change.new is not None:
            self._resources_of[uid_of(change.new)] = change.new["resources"]
            self._nodes_with.update(change.new["resources"])
        self._nodes_with = +self._nodes_with  # without those that no node has
        resources = sorted(self._nodes_with)
        if resources != self._resources:
            self._resources = resources
            _LOG.info("extended resources of the nodes changed", extra=logs.fields(resources=",".join(resources)))

    def _config_map_changed(self, change: Change) -> None:
        if change.old is None or change.new is None or change.old["data"] != change.new["data"]:
            change_type = "created" if change.old is None else "deleted" if change.new is None else "updated"
            metadata = change.obj["metadata"]
            _LOG.info(
                "ConfigMap changed; requeuing all unfinished jobs",
                extra=logs.fields(namespace=metadata.get("namespace"), name=metadata["name"], change=change_type),
            )
            self._changed()


def _config_map_in(namespace: str) -> WatchSource:
    return WatchSource(
        f"configmaps/{CONFIG_MAP}",
        lambda: CONFIG_MAPS,
        transforms.config_map,
        namespace=namespace,
        only=CONFIG_MAP,
        optional=True,
        without=f"; accelerators that it configures in namespace {namespace} are not set up",
    )
