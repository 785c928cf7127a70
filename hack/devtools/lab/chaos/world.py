"""What a run starts: the namespace, the simulated nodes, two operators behind their proxies, and who records it all."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from devtools.lab.chaos.faults import OPERATORS, Fault
from devtools.lab.chaos.injector import Injector
from devtools.lab.chaos.nodes import Nodes
from devtools.lab.chaos.operators import Operator
from devtools.lab.chaos.proxy import Proxy, Trail, write_kubeconfig
from devtools.lab.chaos.recorder import Recorder
from devtools.lab.chaos.resources import watched
from devtools.lab.chaos.webhook import SilentWebhook
from devtools.testbed.base.settings import Settings
from devtools.testbed.client import Client, Refused
from devtools.testbed.operator import free_port

PATIENCE = 420.0
"""Seconds for which a request is repeated: the kubelet may restart the API server only after five minutes."""


@dataclass(frozen=True)
class World:
    """The parts of a run by which it is disturbed and checked. The operators and their proxies are by name."""

    client: Client
    namespace: str
    nodes: Nodes
    webhook: SilentWebhook
    recorder: Recorder
    trail: Trail
    operators: Mapping[str, Operator]
    proxies: Mapping[str, Proxy]

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs, as the API server lists them now."""
        return [job for kind in watched() for job in self.client.items(kind.collection(self.namespace))]

    @property
    def leader(self) -> Operator:
        """The operator that has sent the last write."""
        writes = self.trail.writes_since(0, self.namespace)
        return self.operators[writes[-1].operator if writes else OPERATORS[0]]


@contextlib.contextmanager
def started(
    settings: Settings, kwok: Path, folder: Path, namespace: str, injector: Injector, clock: Callable[[], float]
) -> Iterator[World]:
    """``kwok`` is the program, and ``folder`` is for logs. At the end nothing is left of all this."""
    client, trail = Client(settings.kubeconfig, patience=PATIENCE, timeout=20), Trail()
    operators: dict[str, Operator] = {}
    proxies: dict[str, Proxy] = {}
    arguments = [
        "--namespace", namespace, "--leader-elect", "--leader-election-namespace", namespace, "--install-crds",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        client.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        stack.callback(_delete_namespace, client, namespace)
        nodes = stack.enter_context(Nodes(client, kwok, settings.kubeconfig, folder))
        webhook = stack.enter_context(SilentWebhook(client, namespace))
        for name in OPERATORS:
            proxy = stack.enter_context(Proxy(name, client.access.server, client.context, trail, injector))
            kubeconfig = folder / f"kubeconfig-{name}"
            write_kubeconfig(kubeconfig, proxy.url)
            operator = stack.enter_context(Operator(name, kubeconfig, folder, arguments, free_port()))
            proxy.kill = partial(_kill, operator)
            operators[name], proxies[name] = operator, proxy
            if name == OPERATORS[0]:
                operator.wait_ready()
        recorder = stack.enter_context(Recorder(client, namespace, clock))
        yield World(client, namespace, nodes, webhook, recorder, trail, operators, proxies)


def _kill(operator: Operator, fault: Fault) -> None:
    operator.kill(fault.process)


def _delete_namespace(client: Client, namespace: str) -> None:
    with contextlib.suppress(Refused, TimeoutError):
        client.request("DELETE", f"/api/v1/namespaces/{namespace}")
