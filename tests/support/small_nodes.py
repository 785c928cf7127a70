"""Nodes of two CPUs each that only some pods may use, and the kwok process that plays their kubelets."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import yaml
from devtools.lab.chaos.nodes import pod_stages
from devtools.lab.chaos.shapes import EXIT
from devtools.testbed.cluster import kwok
from kubernetes import client

LABEL = "dljob-test/nodes"
COUNT = 2
CPUS = 2
_READY_SECONDS = 60.0
_END_SECONDS = 10.0


@contextmanager
def small_nodes(core: client.CoreV1Api, program: Path, kubeconfig: Path, name: str, folder: Path) -> Iterator[None]:
    """COUNT nodes with ``name`` as the value of LABEL; on exit they and kwok, which writes to ``folder``, are gone."""
    config = folder / "kwok.yaml"
    config.write_text(
        yaml.safe_dump_all([kwok.configuration(), *kwok.stages(*kwok.NODE_STAGES), *pod_stages()], sort_keys=False)
    )
    command = [
        str(program), "--kubeconfig", str(kubeconfig), "--manage-all-nodes=false",
        "--manage-nodes-with-label-selector", f"{LABEL}={name}",
        "--node-lease-duration-seconds", str(kwok.LEASE_SECONDS), "--config", str(config), "-v", "WARN",
    ]  # fmt: skip
    names = [f"{name}-{index}" for index in range(COUNT)]
    with (folder / "kwok.log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            for node in names:
                core.create_node(cast(client.V1Node, _manifest(node, name)))
            _wait_ready(core, name)
            yield
        finally:
            process.terminate()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for node in names:
                _delete(core.delete_node, node)
                _delete(lambda one: _leases(core).delete_namespaced_lease(one, "kube-node-lease"), node)


def _manifest(node: str, name: str) -> dict[str, Any]:
    """A Node without the label kubernetes.io/os, which keeps the cluster's DaemonSets off."""
    capacity = {**kwok.CAPACITY, "cpu": str(CPUS)}
    return {
        "metadata": {
            "name": node,
            "labels": {LABEL: name, "kubernetes.io/hostname": node},
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {"taints": [dict(kwok.TAINT)]},
        "status": {"allocatable": capacity, "capacity": capacity},
    }


def _wait_ready(core: client.CoreV1Api, name: str) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        listed = (
            core.api_client.sanitize_for_serialization(one)
            for one in core.list_node(label_selector=f"{LABEL}={name}").items
        )
        ready = [one for one in listed if kwok.is_ready(one)]
        if len(ready) == COUNT:
            return
        assert time.monotonic() < deadline, f"{len(ready)} of {COUNT} nodes are ready"
        time.sleep(0.2)


def _leases(core: client.CoreV1Api) -> client.CoordinationV1Api:
    return client.CoordinationV1Api(core.api_client)


def _delete(delete: Any, name: str) -> None:
    try:
        delete(name)
    except client.ApiException as error:
        if error.status != 404:
            raise


def placed_on(name: str) -> dict[str, Any]:
    """Fields of a pod's spec by which it goes to these nodes, and to no other."""
    return {"nodeSelector": {LABEL: name}, "tolerations": [{"key": kwok.TAINT["key"], "operator": "Exists"}]}


def succeeds(core: client.CoreV1Api, pod: Mapping[str, Any]) -> None:
    """Let a pod that runs exit with 0."""
    metadata = pod["metadata"]
    core.patch_namespaced_pod(metadata["name"], metadata["namespace"], {"metadata": {"annotations": {EXIT: "0"}}})
