"""Admission webhooks that do not answer: a server that accepts connections, and configurations that name it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.upstream import Client
from devtools.lab.chaos.workload import OWNED, WATCHED

PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_TIMEOUT = 2
"""Seconds for which the API server waits for an answer."""


def rules_for(all_writes: bool) -> list[dict[str, Any]]:
    """The creations of pods, or all creations for jobs and the writes of their statuses.

    A chaos run's own requests and kwok's are not among them.
    """
    if not all_writes:
        return [_rule("CREATE", "", "pods")]
    created = [_rule("CREATE", resource.group, resource.plural) for resource in OWNED]
    return created + [_rule("UPDATE", resource.group, f"{resource.plural}/status") for resource in WATCHED]


def _rule(operation: str, group: str, resource: str) -> dict[str, Any]:
    return {"operations": [operation], "apiGroups": [group], "apiVersions": ["*"], "resources": [resource]}


def _configuration(name: str, namespace: str, url: str, timeout: int, rules: list[dict[str, Any]]) -> dict[str, Any]:
    hook = {
        "name": f"{name}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": timeout,
        "clientConfig": {"url": url},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": rules,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [hook],
    }


class SilentWebhook:
    """A context manager; on exit it removes its configurations and closes the server."""

    def __init__(self, client: Client, namespace: str, timeout: int = _TIMEOUT) -> None:
        """After ``timeout`` seconds without an answer the API server refuses a write in ``namespace``."""
        self._client = client
        self._namespace = namespace
        self._timeout = timeout
        self.names: list[str] = []
        """Of the present configurations."""

    def __enter__(self) -> SilentWebhook:
        self._server = socket.create_server((own_address(_node_address(self._client)), 0), backlog=1024)
        host, port = self._server.getsockname()
        self._url = f"https://{host}:{port}/"
        return self

    def __exit__(self, *_: object) -> None:
        self.remove_all()
        self._server.close()

    def apply(self, fault: Fault, later: Callable[[float, Callable[[], None]], None]) -> str:
        """Configure a webhook; ``later`` calls a function after so many seconds. Returns what waits for it."""
        name = f"{self._namespace}-{fault.number}"
        all_writes = fault.pick >= 0.5
        self.add(name, rules_for(all_writes))
        later(fault.seconds, lambda: self.remove(name))
        return "all writes" if all_writes else "pods"

    def add(self, name: str, rules: list[dict[str, Any]]) -> None:
        """Add a configuration; its ``rules`` choose the requests that wait and are then refused."""
        self.names.append(name)
        self._client.request("POST", PATH, _configuration(name, self._namespace, self._url, self._timeout, rules))

    def remove(self, name: str) -> None:
        self._client.request("DELETE", f"{PATH}/{name}")
        if name in self.names:
            self.names.remove(name)

    def remove_all(self) -> None:
        for name in list(self.names):
            self.remove(name)


def _node_address(client: Client) -> str:
    """The address of the machine on which the API server runs."""
    (node, *_) = client.items(f"/api/v1/nodes?labelSelector={CONTROL_PLANE}")
    return next(one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP")


def own_address(target: str) -> str:
    """This machine's address on the way to ``target``. Sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((target, 9))
        return str(probe.getsockname()[0])
