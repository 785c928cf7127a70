"""Simulated nodes of a run, the faults on them, and the kwok process that maintains them beside the cluster's own."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from devtools.definitions import load
from devtools.lab.chaos.faults import Fault
from devtools.lab.chaos.shapes import NODE_LABEL
from devtools.lab.chaos.supervised import Supervised
from devtools.testbed.client import Client
from devtools.testbed.cluster import kwok

COUNT = 4
_SELECTOR = ",".join(f"{key}={value}" for key, value in NODE_LABEL.items())
_LEASES = kwok.LEASES
_READY_SECONDS = 120.0
_RESTART_SECONDS = 1.0
_END_SECONDS = 10.0


def pod_stages() -> list[dict[str, Any]]:
    """A pod's stages: ready, ended, killed, deleted."""
    return list(load(Path(__file__).with_name("stages.yaml").read_text(encoding="utf-8")))


def node_manifest(name: str) -> dict[str, Any]:
    """A Node without the label kubernetes.io/os, which keeps the cluster's DaemonSets off."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**NODE_LABEL, "kubernetes.io/hostname": name},
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {"taints": [dict(kwok.TAINT)]},
        "status": {"allocatable": dict(kwok.CAPACITY), "capacity": dict(kwok.CAPACITY)},
    }


class Nodes:
    """A context manager; on exit it removes its nodes and ends kwok."""

    def __init__(self, client: Client, program: Path, kubeconfig: Path, folder: Path) -> None:
        self._client = client
        self._config = folder / "kwok.yaml"
        self._log = folder / "kwok.log"
        command = [
            str(program), "--kubeconfig", str(kubeconfig), "--manage-all-nodes=false",
            "--manage-nodes-with-label-selector", _SELECTOR, "--node-lease-duration-seconds", str(kwok.LEASE_SECONDS),
            "--config", str(self._config), "-v", "WARN",
        ]  # fmt: skip
        # it panics when the API server restarts while it watches
        self._kwok = Supervised(command, self._log, _RESTART_SECONDS)
        self._number = 0
        self.names: list[str] = []

    def __enter__(self) -> Nodes:
        documents = [kwok.configuration(), *kwok.stages(*kwok.NODE_STAGES), *pod_stages()]
        self._config.write_text(yaml.safe_dump_all(documents, sort_keys=False))
        self._kwok.start()
        try:
            for _ in range(COUNT):
                self.add()
            self._wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        self._kwok.end(_END_SECONDS)
        while self.names:
            self.remove(self.names[0])

    def add(self) -> None:
        """Let a node join, with a new name."""
        name = f"chaos-{self._number:04d}"
        self._number += 1
        self._join(name)

    def bring_back(self, name: str) -> None:
        """Let a node join under the name of one that was removed.

        A kwok that has seen the end of the Lease of that name does not renew the next one, so another kwok starts.
        This one takes a node over when the Lease of the former kwok has expired: pods of the other nodes stand still
        for up to 40 s, which is less than Kubernetes waits before it takes a node for lost.
        """
        self.restart()
        self._join(name)

    def _join(self, name: str) -> None:
        self._client.request("POST", "/api/v1/nodes", node_manifest(name))
        self.names.append(name)

    def remove(self, name: str) -> None:
        """Delete the Node object, as a cloud provider does for a machine that is gone."""
        self.names.remove(name)
        self._client.request("DELETE", f"/api/v1/nodes/{name}")
        self._client.request("DELETE", f"{_LEASES}/{name}")

    def apply(self, fault: Fault, later: Callable[[float, Callable[[], None]], None]) -> str:
        """Apply a fault; ``later`` calls a function after so many seconds. Returns what it hit, "" for nothing.

        Kubernetes deletes the pods of a node that has been missing for 40 to 60 s. On one that returns earlier they go
        on, as on a machine that was only unreachable.
        """
        if fault.kind == "nodes stopped":
            self.stop()
            later(fault.seconds, self.resume)
            return "all"
        if len(self.names) < 2:
            return ""
        name = fault.chosen(self.names)
        self.remove(name)
        later(fault.seconds, self.add if fault.kind == "node lost" else lambda: self.bring_back(name))
        return name

    def stop(self) -> None:
        """Stop kwok: no pod of any simulated node changes."""
        self._kwok.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._kwok.signal(signal.SIGCONT)

    def restart(self) -> None:
        """Restart kwok: it does not repeat a change of a pod that the API server has not answered."""
        self.resume()
        self._kwok.signal(signal.SIGTERM)
        self._kwok.wait(_END_SECONDS)

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not all(kwok.is_ready(self._client.request("GET", f"/api/v1/nodes/{name}")) for name in self.names):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the simulated nodes are not ready: see {self._log}")
            time.sleep(0.2)
