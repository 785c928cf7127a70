"""The ClusterServiceVersion: the Deployment, its permissions, and the metadata that a catalog shows."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from devtools.build.olm import description, descriptors, permissions
from devtools.build.olm.sources import Manifest, Sources

PACKAGE = "dljob-operator"
TARGETS = "metadata.annotations['olm.targetNamespaces']"
"""The pod annotation to which OLM writes the namespaces to watch: comma-separated, empty for all."""
INSTALL_MODES = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
"""All four modes: the operator watches all namespaces, one, or several."""


def name(sources: Sources) -> str:
    return f"{PACKAGE}.v{sources.version}"


def make(sources: Sources) -> dict[str, Any]:
    """The whole document."""
    text = description.of(sources.readme)
    container = sources.deployment["spec"]["template"]["spec"]["containers"][0]
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": name(sources),
            # OLM overrides this value
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": json.dumps(examples(sources), indent=2),
                "capabilities": "Seamless Upgrades",
                "categories": "AI/Machine Learning",
                "containerImage": container["image"],
                "description": description.summary(text),
                "repository": sources.urls["repository"],
                "support": sources.provider,
            },
            # the images are built for the building machine's architecture; these architectures are tested
            "labels": {"operatorframework.io/arch.amd64": "supported", "operatorframework.io/os.linux": "supported"},
        },
        "spec": {
            "displayName": "DLJob Operator",
            "description": text,
            "version": sources.version,
            "minKubeVersion": sources.min_kube_version,
            "maturity": "alpha",
            "provider": {"name": sources.provider},
            "links": [{"name": key.capitalize(), "url": url} for key, url in sources.urls.items()],
            "keywords": [
                *("deep learning", "training", "Ansible"),
                *("MXNet", "TensorFlow", "Caffe2", "PyTorch", "JAX", "PaddlePaddle", "XGBoost", "MPI"),
            ],
            "icon": [{"base64data": sources.icon, "mediatype": "image/svg+xml"}],
            "installModes": [{"type": mode, "supported": True} for mode in INSTALL_MODES],
            "install": {"strategy": "deployment", "spec": _install(sources)},
            "customresourcedefinitions": {"owned": [_owned(one) for one in sources.definitions]},
        },
    }


SHOWN = {"mpijobs.kubeflow.org": "v2beta1"}
"""Versions other than the stored one that a catalog shows: MPIJobs of v1 need rights that the bundle does not give."""


def examples(sources: Sources) -> list[Manifest]:
    """For each CRD the first example that uses the version that a catalog shows."""
    found = []
    for definition in sources.definitions:
        wanted = (f"{definition['spec']['group']}/{shown(definition)['name']}", definition["spec"]["names"]["kind"])
        fitting = [one for one in sources.examples if (one["apiVersion"], one["kind"]) == wanted]
        if not fitting:
            raise ValueError(f"examples/ has no {wanted[0]} {wanted[1]}")
        found.append(fitting[0])
    return found


def shown(definition: Manifest) -> Mapping[str, Any]:
    """The version of a CRD that a catalog shows, the stored one as a rule; the others are for existing manifests."""
    versions: Sequence[Mapping[str, Any]] = definition["spec"]["versions"]
    name = SHOWN.get(definition["metadata"]["name"])
    return next(version for version in versions if (version["name"] == name if name else version["storage"]))


def _owned(definition: Manifest) -> dict[str, Any]:
    version = shown(definition)
    schema = version["schema"]["openAPIV3Schema"]
    kind = definition["spec"]["names"]["kind"]
    used = [("Pod", "v1"), ("Service", "v1"), ("ConfigMap", "v1"), ("Deployment", "v1")]
    return {
        "name": definition["metadata"]["name"],
        "kind": kind,
        "version": version["name"],
        "displayName": f"{kind} ({definition['spec']['group']})",
        "description": schema["description"],
        "resources": [{"kind": kind, "name": "", "version": version} for kind, version in used],
        "specDescriptors": descriptors.of(schema, "spec", descriptors.SPEC),
        "statusDescriptors": descriptors.of(schema, "status", descriptors.STATUS),
    }


def _install(sources: Sources) -> dict[str, Any]:
    deployment = copy.deepcopy(sources.deployment)
    pod = deployment["spec"]["template"]["spec"]
    account = pod["serviceAccountName"]
    (watched,) = (entry for entry in pod["containers"][0]["env"] if entry["name"] == "WATCH_NAMESPACE")
    watched.pop("value")
    watched["valueFrom"] = {"fieldRef": {"fieldPath": TARGETS}}
    namespaced, cluster = permissions.split(sources.rules)
    # OLM grants these in the operator's namespace too
    namespaced += permissions.missing(sources.own_rules, namespaced)
    return {
        "permissions": [{"serviceAccountName": account, "rules": namespaced}],
        "clusterPermissions": [{"serviceAccountName": account, "rules": cluster}],
        "deployments": [
            {
                "name": deployment["metadata"]["name"],
                "label": deployment["spec"]["selector"]["matchLabels"],
                "spec": deployment["spec"],
            }
        ],
    }
