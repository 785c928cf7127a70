"""A program that reports its progress with Python's own library: 10 until it is released, then 100, and it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from devtools.lab.chaos.webhook import CONTROL_PLANE, own_address
from devtools.testbed.operator import ProbedOperator, free_port

from support.live_jobs import RELEASE, Cluster

REPORT = """
import json, os, ssl, time, urllib.request
url, token, authority = (os.environ.get("KUBEFLOW_TRAINER_SERVER_" + name) for name in ("URL", "TOKEN", "CA_CERT"))
context = ssl.create_default_context(cafile=authority)

def report(percent):
    status = {"progressPercentage": percent, "estimatedRemainingSeconds": 100 - percent}
    body = json.dumps({"trainerStatus": status}).encode()
    headers = {"Authorization": "Bearer " + open(token).read()}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=5, context=context) as answer:
            return answer.status == 200
    except OSError as error:
        print(error, flush=True)
"""
"""Defines ``report``, which returns whether the operator has taken it."""
PROGRAM = f"""{REPORT}
while not os.path.exists({RELEASE!r}):
    report(10)
    time.sleep(1)
while not report(100):
    time.sleep(1)
"""
IMAGE = "dljob/pytorch-digits:1"
Start = Callable[..., ProbedOperator]
"""Gets the name of the operator's folder, and further options of ``dljob-operator run``."""


def reached_by_pods(own: Cluster, tmp_path: Path) -> Start:
    """Starts operators on this machine that take reports, by the names of their folders.

    Pods reach them as the API server reaches a webhook here.
    """
    (node, *_) = own.core.list_node(label_selector=CONTROL_PLANE).items
    host = own_address(next(one.address for one in node.status.addresses if one.type == "InternalIP"))
    address = f"{host}:{free_port(host)}"

    def operator(name: str, *more: str) -> ProbedOperator:
        folder = tmp_path / name
        folder.mkdir()
        reached = (f"--progress-url=https://{address}", f"--progress-bind-address={address}")
        options = ("--namespace", own.namespace, "--progress", "on", "--usage", "on", *reached, *more)
        return ProbedOperator(own.kubeconfig, folder, options)

    return operator


def reporting_job(name: str = "reports") -> dict[str, Any]:
    """A PyTorchJob of one process that runs it."""
    container = {"name": "pytorch", "image": IMAGE, "command": ["python3", "-c", PROGRAM]}
    template = {"spec": {"containers": [container]}}
    master = {"replicas": 1, "restartPolicy": "Never", "template": template}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }
