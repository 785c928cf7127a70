"""Admission webhooks that do not answer: a server that accepts connections, and configurations that name it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.resources import OWNED, watched
from devtools.testbed.client import Client

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
    return created + [_rule("UPDATE", kind.group, f"{kind.plural}/status") for kind in watched()]


def _rule(operation: str, group: str, resource: str) -> dict[str, Any]:
    return {"operations": [operation], "apiGroups": [group], "apiVersions": ["*"], "resources": [resource]}


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
        hook = {
            "name": f"{name}.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": self._timeout, "clientConfig": {"url": self._url},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}, "rules": rules,
        }  # fmt: skip
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name}, "webhooks": [hook],
        }  # fmt: skip
        self._client.request("POST", PATH, configuration)

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
