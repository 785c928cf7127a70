"""The faults on simulated nodes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.nodes import Nodes
from devtools.testbed.client import Client

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODES = "/api/v1/nodes"
REMOVED = [f"DELETE {NODES}/chaos-0001", f"DELETE {LEASES}/chaos-0001"]


@dataclass
class FakeClient:
    """Notes the requests, a creation with the name."""

    sent: list[str] = field(default_factory=list)

    def request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        self.sent.append(f"{method} {path}" + (f" {body['metadata']['name']}" if body else ""))
        return {}


class Watched(Nodes):
    """Nodes whose kwok notes when it is restarted, stopped and resumed."""

    def __init__(self, client: FakeClient, count: int = 3) -> None:
        super().__init__(cast(Client, client), Path("kwok"), Path("kubeconfig"), Path("folder"))
        for _ in range(count):
            self.add()
        client.sent.clear()
        self.sent = client.sent

    def restart(self) -> None:
        self.sent.append("restart")

    def stop(self) -> None:
        self.sent.append("stop")

    def resume(self) -> None:
        self.sent.append("resume")


@pytest.mark.parametrize(
    ("kind", "at_once", "later", "names"),
    [
        ("node lost", REMOVED, [f"POST {NODES} chaos-0003"], {"chaos-0000", "chaos-0002", "chaos-0003"}),
        (
            "node returned",
            REMOVED,
            ["restart", f"POST {NODES} chaos-0001"],
            {"chaos-0000", "chaos-0001", "chaos-0002"},
        ),
        ("nodes stopped", ["stop"], ["resume"], {"chaos-0000", "chaos-0001", "chaos-0002"}),
    ],
)
def test_a_fault_and_its_end(kind: str, at_once: list[str], later: list[str], names: set[str]) -> None:
    client = FakeClient()
    nodes = Watched(client)
    due: list[tuple[float, Callable[[], None]]] = []
    hit = nodes.apply(Fault(0, kind, 0, 0.0, seconds=7.0, pick=0.5), lambda *one: due.append(one))
    assert hit == ("all" if kind == "nodes stopped" else "chaos-0001")
    assert client.sent == at_once
    assert ("chaos-0001" in nodes.names) is (kind == "nodes stopped")
    client.sent.clear()
    ((seconds, action),) = due
    action()
    assert seconds == 7.0
    assert client.sent == later
    assert set(nodes.names) == names


@pytest.mark.parametrize("kind", ["node lost", "node returned"])
def test_the_last_node_stays(kind: str) -> None:
    client = FakeClient()
    nodes = Watched(client, 1)
    assert nodes.apply(Fault(0, kind, 0, 0.0), lambda seconds, action: None) == ""
    assert client.sent == []


def test_a_restart_waits_for_the_end_of_kwok() -> None:
    """It would else take a node that joins then for one of which it has seen the end."""
    nodes = Nodes(cast(Client, FakeClient()), Path("kwok"), Path("kubeconfig"), Path("folder"))
    slow = "trap 'sleep 0.2; exit' TERM; echo ready; while :; do sleep 0.01; done"
    with subprocess.Popen(["bash", "-c", slow], stdout=subprocess.PIPE) as kwok:
        assert kwok.stdout is not None
        kwok.stdout.readline()
        nodes._kwok.process = kwok  # noqa: SLF001 - a process that stands for kwok
        nodes.restart()
        assert kwok.returncode is not None
