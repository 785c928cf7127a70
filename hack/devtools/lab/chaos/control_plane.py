"""Ends processes of the control plane inside the cluster's node; the kubelet starts them again."""

from __future__ import annotations

from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import lifecycle

PROGRAMS = {"API server restarted": "kube-apiserver", "etcd restarted": "etcd"}
_SCRIPT = 'for p in /proc/[0-9]*; do [ "$(cat "$p/comm" 2>/dev/null)" = "$1" ] && kill -9 "${p#/proc/}"; done; true'


def kill(settings: Settings, kind: str) -> None:
    """SIGKILL the program of this kind of fault. The process ids are those of the node's own namespace."""
    _, cluster = lifecycle.existing(settings)
    cluster.engine.run("exec", settings.node, "sh", "-c", _SCRIPT, "kill", PROGRAMS[kind], timeout=60)
