"""The ClusterServiceVersion: the Deployment, its permissions, and the metadata that a catalog shows."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from devtools.build.olm.sources import Manifest, Sources, description

PACKAGE = "dljob-operator"
TARGETS = "metadata.annotations['olm.targetNamespaces']"
"""The pod annotation to which OLM writes the namespaces to watch: comma-separated, empty for all."""
INSTALL_MODES = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
"""All four modes: the operator watches all namespaces, one, or several."""
SHOWN = {"mpijobs.kubeflow.org": "v2beta1"}
"""Versions other than the stored one that a catalog shows: MPIJobs of v1 need rights that the bundle does not give."""
CLUSTER_SCOPED = {("", "nodes")}
"""The cluster-scoped resources among those that the operator uses."""
_UI = "urn:alm:descriptor:com.tectonic.ui"
_KUBERNETES = "urn:alm:descriptor:io.kubernetes"

SPEC_FIELDS = {
    "cleanPodPolicy": ("Pods to delete at the end", ()),
    "cleanupPodPolicy": ("Pods to delete at the end", ()),
    "runPolicy.cleanPodPolicy": ("Pods to delete at the end", ()),
    "runPolicy.suspend": ("Suspended", (f"{_UI}:booleanSwitch",)),
    "runPolicy.backoffLimit": ("Retries", (f"{_UI}:number",)),
    "runPolicy.activeDeadlineSeconds": ("Deadline in seconds", (f"{_UI}:number",)),
    "runPolicy.ttlSecondsAfterFinished": ("Seconds kept after the end", (f"{_UI}:number",)),
}
STATUS_FIELDS = {
    "state": ("State", (f"{_KUBERNETES}.phase",)),
    "reason": ("Reason", (f"{_KUBERNETES}.phase:reason",)),
    "replicas": ("Replicas", (f"{_UI}:text",)),
    "conditions": ("Conditions", (f"{_KUBERNETES}.conditions",)),
    "startTime": ("Started", (f"{_UI}:text",)),
    "completionTime": ("Ended", (f"{_UI}:text",)),
}
"""Paths below ``spec`` and ``status``, each with a display name and the descriptors of its widget."""


def name(sources: Sources) -> str:
    return f"{PACKAGE}.v{sources.version}"


def make(sources: Sources) -> dict[str, Any]:
    """The whole document."""
    text = description(sources.readme)
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
                "description": " ".join(text.partition("\n\n")[0].split()),
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
        "specDescriptors": descriptors(schema, "spec", SPEC_FIELDS),
        "statusDescriptors": descriptors(schema, "status", STATUS_FIELDS),
    }


def _install(sources: Sources) -> dict[str, Any]:
    deployment = copy.deepcopy(sources.deployment)
    pod = deployment["spec"]["template"]["spec"]
    account = pod["serviceAccountName"]
    (watched,) = (entry for entry in pod["containers"][0]["env"] if entry["name"] == "WATCH_NAMESPACE")
    watched.pop("value")
    watched["valueFrom"] = {"fieldRef": {"fieldPath": TARGETS}}
    namespaced, cluster = split(sources.rules)
    # OLM grants these in the operator's namespace too
    namespaced += missing(sources.own_rules, namespaced)
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


def descriptors(
    schema: Mapping[str, Any], part: str, known: Mapping[str, tuple[str, tuple[str, ...]]]
) -> list[dict[str, Any]]:
    """The descriptors of those of the ``known`` fields that a kind's schema has below ``part``."""
    found = []
    for path, (title, marks) in known.items():
        field = _field_at(schema["properties"].get(part, {}), path)
        if field is not None:
            entry = {"path": path, "displayName": title, "description": field["description"]}
            found.append({**entry, "x-descriptors": [*marks]} if marks else entry)
    return found


def _field_at(schema: Mapping[str, Any], path: str) -> Mapping[str, Any] | None:
    field: Mapping[str, Any] | None = schema
    for name in path.split("."):
        field = ((field or {}).get("properties") or {}).get(name)
    return field


def split(rules: Sequence[Manifest]) -> tuple[list[Manifest], list[Manifest]]:
    """The rules for the watched namespaces, and those for the whole cluster.

    OLM binds the first in the namespaces of its OperatorGroup: the watched ones and the operator's own, or all.
    Cluster-scoped resources need a ClusterRoleBinding, even if only some namespaces are watched.
    """
    namespaced: list[Manifest] = []
    cluster: list[Manifest] = []
    for rule in rules:
        scopes = {(group, resource) in CLUSTER_SCOPED for group in rule["apiGroups"] for resource in rule["resources"]}
        if len(scopes) != 1:
            raise ValueError(f"{rule['resources']}: some are namespaced and some are cluster-scoped; split the rule")
        (cluster if scopes.pop() else namespaced).append(rule)
    return namespaced, cluster


def missing(wanted: Sequence[Manifest], granted: Sequence[Manifest]) -> list[Manifest]:
    """The rules of ``wanted`` that ``granted`` does not cover."""
    covered = {
        (g, r, v) for rule in granted for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]
    }
    return [
        rule
        for rule in wanted
        if any((g, r, v) not in covered for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"])
    ]
