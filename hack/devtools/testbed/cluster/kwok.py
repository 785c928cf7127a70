"""Simulated nodes: kwok maintains them and the pods on them in the same cluster as the real node."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from devtools.definitions import documents
from devtools.testbed.base import gobuild, process
from devtools.testbed.base.errors import ClusterError
from devtools.testbed.base.settings import Settings
from devtools.testbed.client import MERGE, Client

GO_DIR = Settings.go_dir
SELECTOR = "type=kwok"
PREFIX = "kwok-"
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
CAPACITY = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "250"}
LEASE_SECONDS = 40
MODULE = "sigs.k8s.io/kwok"
NODE_STAGES = ("node/fast", "node/heartbeat-with-lease")
"""A node is Ready at once. Its lease says that it lives, so that its status changes as rarely as a kubelet's."""
POD_STAGES = ("pod/fast",)
"""A pod is Ready at once, and one of a batch Job succeeds at once."""
CIDR = "10.0.0.0/24"
"""The addresses that kwok gives pods. Nothing answers there."""
PARALLEL = 16
"""Number of pods that kwok updates in parallel. Its default of 4 updates 50 to 100 pods/s here, which is too slow."""
NODES = f"/api/v1/nodes?labelSelector={urllib.parse.quote(SELECTOR)}"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
KUBE_PROXY = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
NOT_FOUND = 404


def node_name(index: int) -> str:
    return f"{PREFIX}{index:04d}"


def node_manifest(index: int) -> dict[str, Any]:
    """The Node object; kwok sets its status and renews its lease."""
    name = node_name(index)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "type": "kwok",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/role": "agent",
                "node-role.kubernetes.io/agent": "",
            },
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {"taints": [dict(TAINT)]},
        "status": {"allocatable": dict(CAPACITY), "capacity": dict(CAPACITY)},
    }


def configuration() -> dict[str, Any]:
    """kwok settings that have no command line flag: all of them, since kwok 0.8 has no defaults for these."""
    options = {
        "cidr": CIDR,
        "podPlayStageParallelism": PARALLEL,
        "nodePlayStageParallelism": 4,
        "nodeLeaseParallelism": 4,
        "podsOnNodeSyncParallelism": 1,
        "enablePodsOnNodeSyncListPager": True,
        "enablePodsOnNodeSyncStreamWatch": False,
    }
    return {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}


def stages(*folders: str, go_dir: Path = GO_DIR) -> list[dict[str, Any]]:
    """The stages in these folders of kwok's own module, by which it plays the kubelet: it has none by default."""
    root = gobuild.module_dir(go_dir, gobuild.KWOK.module, MODULE) / "kustomize" / "stage"
    files = (file for folder in folders for file in sorted((root / folder).glob("*.yaml")))
    return [one for file in files for one in documents(file) if one["kind"] == "Stage"]


def _config_file(settings: Settings) -> Path:
    return settings.state_dir / "kwok.yaml"


def command(kwok: Path, settings: Settings) -> list[str]:
    return [
        str(kwok), "--kubeconfig", str(settings.kubeconfig), "--manage-all-nodes=false",
        "--manage-nodes-with-label-selector", SELECTOR, "--node-lease-duration-seconds", str(LEASE_SECONDS),
        "--config", str(_config_file(settings)), "-v", "WARN",
    ]  # fmt: skip


def daemonset_patch() -> dict[str, Any]:
    """Keeps kube-proxy, which tolerates every taint, off the kwok nodes."""
    term = {"matchExpressions": [{"key": "type", "operator": "NotIn", "values": ["kwok"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    return {"spec": {"template": {"spec": {"affinity": affinity}}}}


def start(settings: Settings, kwok: Path) -> process.ProcessId:
    """Start kwok on the host, in a new session."""
    documents = [configuration(), *stages(*NODE_STAGES, *POD_STAGES, go_dir=settings.go_dir)]
    _config_file(settings).write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return process.identity(process.start(command(kwok, settings), settings.log_dir / "kwok.log"))


def present(api: Client) -> set[str]:
    return {item["metadata"]["name"] for item in api.request("GET", NODES)["items"]}


def remove_surplus(api: Client, count: int) -> None:
    """Remove the nodes beyond ``count`` and every lease without a node.

    kwok must be stopped meanwhile: if its lease is deleted, it never renews the lease of a later node of that name.
    """
    there = present(api)
    keep = there & {node_name(i) for i in range(count)}
    for name in sorted(there - keep):
        api.request("DELETE", f"/api/v1/nodes/{name}", absent=(NOT_FOUND,))
    for lease in api.request("GET", LEASES)["items"]:
        name = lease["metadata"]["name"]
        if name.startswith(PREFIX) and name not in keep:
            api.request("DELETE", f"{LEASES}/{name}", absent=(NOT_FOUND,))


def add_missing(api: Client, count: int, timeout: int) -> None:
    """Create the missing nodes up to ``count`` and wait until kwok has set all of them to Ready."""
    there = present(api)
    if count > len(there):
        api.request("PATCH", KUBE_PROXY, daemonset_patch(), MERGE)
    for index in range(count):
        if node_name(index) not in there:
            api.ensure("/api/v1/nodes", node_manifest(index))
    _wait_ready(api, count, timeout)


def is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _wait_ready(api: Client, count: int, timeout: int) -> None:
    """Wait with one watch until ``count`` kwok nodes are Ready; ``kubectl wait`` polls each node, five a second."""
    listed = api.request("GET", NODES)
    ready = {item["metadata"]["name"] for item in listed["items"] if is_ready(item)}
    if len(ready) >= count:
        return
    for event in api.watch(NODES, listed["metadata"]["resourceVersion"], timeout):
        if event["type"] != "DELETED" and is_ready(event["object"]):
            ready.add(event["object"]["metadata"]["name"])
        if len(ready) >= count:
            return
    raise ClusterError(
        f"{count - len(ready)} of {count} kwok nodes are not Ready after {timeout} s",
        "see .cluster/logs/kwok.log",
    )
