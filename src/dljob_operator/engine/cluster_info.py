"""What is watched of the cluster besides jobs: the operator's ConfigMap, and which extended resources the nodes have.

A run is handed both, so that a pod which asks for an accelerator costs no read. Either may be forbidden: the
log says so once, and runs do without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dljob_operator.engine import transforms
from dljob_operator.engine.discovery import CONFIG_MAPS, NODES
from dljob_operator.engine.informer import Informer
from dljob_operator.engine.kube import KubeApi
from dljob_operator.engine.predicates import Change, title

_LOG = logging.getLogger(__name__)
CONFIG_MAP = "tf-job-operator-config"
_COMMON_NAMESPACE = "default"
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def own_namespace(environ: Mapping[str, str], file: Path = _NAMESPACE_FILE) -> str:
    """Return the namespace that this process runs in: POD_NAMESPACE, the service account's, or "" for none."""
    named = environ.get("POD_NAMESPACE", "").strip()
    if named:
        return named
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


class ClusterInfoWatcher:
    """Watches the ConfigMap in the operator's own namespace and in the common one, and all nodes.

    `changed` is called, on a thread of an informer's, when what a ConfigMap says has changed. Nodes call for
    nothing: a pod that was made cannot ask for another resource.
    """

    def __init__(self, api: KubeApi, namespace: str, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._nodes_version = 0
        self._names: tuple[int, list[str]] = (-1, [])  # of which version of the nodes, which extended resources
        self._config_maps = [
            Informer(
                api,
                f"the ConfigMap {CONFIG_MAP}",
                lambda: CONFIG_MAPS,
                self._config_map_changed,
                transform=transforms.config_map,
                namespace=place,
                only=CONFIG_MAP,
                optional=True,
                without=f"; without it nothing is known of accelerators that it configures in {place}",
            )
            for place in dict.fromkeys(filter(None, (namespace, _COMMON_NAMESPACE)))
        ]
        self._nodes = Informer(
            api,
            "nodes",
            lambda: NODES,
            self._node_changed,
            transform=transforms.node,
            optional=True,
            without="; without it alpha resource names are left as they are",
        )

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
            "resources": None if self._nodes.missing_now else self._resources(),
        }

    def _resources(self) -> list[str]:
        """Return what the nodes have. Collected anew only after a change: there may be thousands of them."""
        version = self._nodes_version
        if self._names[0] != version:
            found = {name for node in self._nodes.store.all() for name in node["resources"]}
            self._names = (version, sorted(found))
        return self._names[1]

    def _node_changed(self, change: Change) -> None:
        if change.old is None or change.new is None or change.old["resources"] != change.new["resources"]:
            self._nodes_version += 1

    def _config_map_changed(self, change: Change) -> None:
        if change.old is None or change.new is None or change.old["data"] != change.new["data"]:
            how = "is there" if change.old is None else "is gone" if change.new is None else "has changed"
            _LOG.info("the ConfigMap %s %s: jobs that are not over are looked at", title(change.obj), how)
            self._changed()
