"""The ServiceAccount of all peers, and the API server's count of its requests.

With a ServiceAccount the API server's priority and fairness applies to each peer as to an operator in a pod. Two
FlowSchemas separate reads from writes, because the API server counts requests by FlowSchema.
"""

from __future__ import annotations

import base64
import re
import time
from pathlib import Path
from typing import Any

import yaml

from devtools.testbed.client import APPLY, Client

NAMESPACE = "dljob-bench"
USER = "peer"
READS, WRITES = "dljob-bench-reads", "dljob-bench-writes"
_TIMEOUT = 60.0  # timeout in seconds for the deletion of a namespace
_VERBS = {READS: ["get", "list", "watch"], WRITES: ["create", "update", "patch", "delete", "deletecollection"]}
_COUNT = re.compile(
    r'^apiserver_flowcontrol_dispatched_requests_total\{flow_schema="([^"]+)"[^}]*\} ([0-9.e+]+)$', re.MULTILINE
)


def counts(metrics: str) -> tuple[float, float]:
    """(reads, writes) from the API server's metrics."""
    totals = {READS: 0.0, WRITES: 0.0}
    for schema, value in _COUNT.findall(metrics):
        if schema in totals:
            totals[schema] += float(value)
    return totals[READS], totals[WRITES]


def requests(client: Client) -> tuple[float, float]:
    return counts(client.text("/metrics"))


_SIZES = {
    "api_server_bytes": re.compile(r"^process_resident_memory_bytes ([0-9.e+]+)$", re.MULTILINE),
    "storage_bytes": re.compile(r"^apiserver_storage_size_bytes(?:\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE),
}


def sizes(metrics: str) -> dict[str, float]:
    """Bytes of the API server's memory and of etcd's database, from the API server's metrics; 0 if missing."""
    found = {name: pattern.search(metrics) for name, pattern in _SIZES.items()}
    return {name: float(match[1]) if match else 0.0 for name, match in found.items()}


def server_sizes(client: Client) -> dict[str, float]:
    return sizes(client.text("/metrics"))


def flow_schema(name: str, precedence: int) -> dict[str, Any]:
    rule = {"verbs": _VERBS[name], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "priorityLevelConfiguration": {"name": "workload-low"},  # the priority level of service accounts
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [
                {
                    "subjects": [{"kind": "ServiceAccount", "serviceAccount": {"namespace": NAMESPACE, "name": USER}}],
                    "resourceRules": [rule],
                }
            ],
        },
    }


def prepare(client: Client, kubeconfig: Path) -> None:
    """Create the account, unless it exists, and write a kubeconfig for it."""
    client.ensure("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    client.ensure(accounts, {"metadata": {"name": USER}})
    binding = {
        "metadata": {"name": "dljob-bench"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": USER}],
    }
    client.ensure("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    for precedence, name in enumerate(_VERBS, start=8000):
        path = f"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/{name}?fieldManager=dljob-bench&force=true"
        client.request("PATCH", path, flow_schema(name, precedence), APPLY)
    token = client.request("POST", f"{accounts}/{USER}/token", {"spec": {"expirationSeconds": 24 * 3600}})
    authority = base64.b64encode(client.access.authority.encode()).decode()
    cluster = {"server": client.access.server, "certificate-authority-data": authority}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bench", "cluster": cluster}],
        "users": [{"name": "bench", "user": {"token": token["status"]["token"]}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "current-context": "bench",
    }
    kubeconfig.write_text(yaml.safe_dump(document))
    kubeconfig.chmod(0o600)


def remove(client: Client) -> None:
    """Delete everything that :func:`prepare` created, and wait until it is gone."""
    for path in (
        f"/api/v1/namespaces/{NAMESPACE}",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/dljob-bench",
        *(f"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/{name}" for name in _VERBS),
    ):
        client.raw("DELETE", path)
    deadline = time.monotonic() + _TIMEOUT
    while client.exists(f"/api/v1/namespaces/{NAMESPACE}") and time.monotonic() < deadline:
        time.sleep(0.1)
