"""Kubeflow's training-operator 1.8.1, the last one with MXJobs: with its defaults, and without its client limits."""

from __future__ import annotations

import base64
import shutil
import threading
import time
from pathlib import Path

from devtools.lab.bench import tools
from devtools.testbed.client import Client, Refused
from devtools.testbed.operator import free_port

VERSION = "v1.8.1"
READY = '"controller": "mxjob-controller", "worker count"'
RECONCILES = r'controller_runtime_reconcile_total\{controller="mxjob-controller"'
NAMESPACE = "kubeflow"
SECRET = "training-operator-webhook-cert"
WEBHOOK = "validator.training-operator.kubeflow.org"
CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")
"""The folder of its serving certificate, which its pod would mount from the Secret."""
ENVIRONMENT = {"MY_POD_NAMESPACE": NAMESPACE, "TMPDIR": str(CERTIFICATES.parents[1])}
"""Its webhook server expects CERTIFICATES below the temporary folder."""
KINDS = ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "MPIJob")
"""Those of kubeflow.org/v1 that it reconciles besides MXJob."""


def default() -> list[str]:
    """Change only the ports, because the default ones may be in use on this machine."""
    return [
        str(tools.training_operator() / "training-operator"),
        f"--health-probe-bind-address=127.0.0.1:{free_port()}",
        f"--webhook-server-port={free_port()}",
    ]


def lifted() -> list[str]:
    return [str(tools.training_operator() / "training-operator-unlimited"), "--controller-threads=8"]


def prepare(kubeconfig: Path) -> None:
    """Create what it needs besides this operator's CRDs, which define all of its kinds: the validation is the same."""
    client = Client(kubeconfig)
    client.ensure("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    client.ensure(f"/api/v1/namespaces/{NAMESPACE}/secrets", {"metadata": {"name": SECRET}})
    webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    client.ensure(webhooks, {"metadata": {"name": WEBHOOK}})
    tools.training_operator()
    threading.Thread(target=_mount_certificates, args=(client,), daemon=True).start()


def _mount_certificates(client: Client) -> None:
    """Write the Secret's content to files, as the kubelet would, when the operator has filled it."""
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}"
    while True:  # the peer may start late; the thread ends with the benchmark
        try:
            data = client.request("GET", path).get("data") or {}
        except (Refused, OSError):
            data = {}
        if "tls.crt" in data:
            CERTIFICATES.mkdir(parents=True, exist_ok=True)
            for name, value in data.items():
                (CERTIFICATES / name).write_bytes(base64.b64decode(value))
            return
        time.sleep(0.5)


def clean_up() -> None:
    shutil.rmtree(CERTIFICATES.parent, ignore_errors=True)
