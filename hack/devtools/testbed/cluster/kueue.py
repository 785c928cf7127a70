"""Kueue as a process on this machine: the manifests of its own Go module, whose webhooks the API server finds here."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devtools.definitions import documents
from devtools.testbed.base import gobuild
from devtools.testbed.base.settings import Settings
from devtools.testbed.cluster import lifecycle

MODULE = "sigs.k8s.io/kueue"
SERVICE = "kueue-webhook-service"
"""The Service of an installation in pods. Here it has no object, and only gives names to other things."""
SECRET = "kueue-webhook-server-cert"
CERTIFICATE_NAMES = ("DNS:kueue-ca",)
"""What Kueue looks for in the certificate of its own authority."""
CERTIFICATE_DAYS = 365
"""Kueue replaces a certificate that expires within 90 days."""
_PREFIX = "kueue-"

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Endpoint:
    """Where the API server finds Kueue's webhooks."""

    host: str
    port: int
    certificate: str
    """The server's certificate, which is its own authority, in PEM."""

    def client_config(self, path: str) -> Manifest:
        bundle = base64.b64encode(self.certificate.encode()).decode()
        return {"url": f"https://{self.host}:{self.port}{path}", "caBundle": bundle}


def program(settings: Settings) -> Path:
    """The manager, compiled if necessary. Starts the cluster if it is not up."""
    return lifecycle.compiled(settings, gobuild.KUEUE, "Kueue")


def components(settings: Settings) -> Path:
    """The folder of Kueue's manifests in Go's module cache, downloaded if necessary."""
    return gobuild.module_dir(settings.go_dir, gobuild.KUEUE.module, MODULE) / "config" / "components"


def definitions(folder: Path, endpoint: Endpoint) -> list[Manifest]:
    """The CRDs of ``components``; ``endpoint`` converts the versions of those that have several."""
    (kustomization,) = documents(folder / "crd" / "kustomization.yaml")
    found = {
        one["metadata"]["name"]: one for name in kustomization["resources"] for one in documents(folder / "crd" / name)
    }
    for patch in kustomization["patches"]:
        for changed in documents(folder / "crd" / patch["path"]):
            webhook = changed["spec"]["conversion"]["webhook"]
            webhook["clientConfig"] = endpoint.client_config(webhook["clientConfig"]["service"]["path"])
            found[changed["metadata"]["name"]]["spec"]["conversion"] = changed["spec"]["conversion"]
    return list(found.values())


def webhooks(folder: Path, endpoint: Endpoint, namespaces: Sequence[str]) -> list[Manifest]:
    """The webhook configurations of ``components``, for objects in these namespaces and in none.

    Others do not wait for this Kueue: a pod cannot be created while its webhook does not answer.
    """
    selector = {"matchExpressions": [_in(namespaces)]}
    found = documents(folder / "webhook" / "manifests.yaml")
    for configuration in found:
        configuration["metadata"]["name"] = _PREFIX + configuration["metadata"]["name"]
        for hook in configuration["webhooks"]:
            hook["clientConfig"] = endpoint.client_config(hook["clientConfig"]["service"]["path"])
            hook["namespaceSelector"] = selector
    return found


def _in(namespaces: Sequence[str]) -> Manifest:
    return {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}


def configuration(
    home: str,
    namespaces: Sequence[str],
    endpoint: Endpoint,
    certificates: Path,
    health_port: int,
    given: Mapping[str, Any],
) -> Manifest:
    """Kueue's configuration. The keys of ``given`` replace those of here, except that ``featureGates`` are merged.

    ``home`` is its own namespace, with the Secret of its certificate. It manages jobs in ``namespaces`` only.
    """
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": home,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": endpoint.host, "port": endpoint.port, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True, "webhookServiceName": SERVICE, "webhookSecretName": SECRET},
        "managedJobsNamespaceSelector": {"matchExpressions": [_in(namespaces)]},
        **given,
        # that server wants a folder of its own in the root folder
        "featureGates": {"VisibilityOnDemand": False, **given.get("featureGates", {})},
    }
