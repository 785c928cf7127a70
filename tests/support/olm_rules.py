"""The rules of OLM and its catalogs for a bundle's files; the tests apply them to deploy/olm.

Each rule is a function that yields a sentence for each violation. They reimplement the validators of `operator-sdk
bundle validate`, which is a Go program that the tests do not have.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devtools import definitions

Manifest = dict[str, Any]

SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
INSTALL_MODES = {"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"}
CAPABILITIES = {"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}
CATEGORIES = {
    "AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider", "Developer Tools", "Database",
    "Integration & Delivery", "Logging & Tracing", "Monitoring", "Modernization & Migration", "Networking",
    "OpenShift Optional", "Security", "Storage", "Streaming & Messaging", "Observability",
}  # fmt: skip
PICTURES = {"image/gif", "image/jpeg", "image/png", "image/svg+xml"}
MATURITIES = {"planning", "pre-alpha", "alpha", "beta", "stable", "mature", "inactive", "deprecated"}
LARGEST = 1 << 20
"""Total bytes, with each file compressed and base64-encoded: OLM stores a bundle in one ConfigMap."""
REMOVED_APIS = {
    "apiextensions.k8s.io/v1beta1", "rbac.authorization.k8s.io/v1beta1", "policy/v1beta1", "batch/v1beta1",
    "autoscaling/v2beta1", "autoscaling/v2beta2", "extensions/v1beta1", "apps/v1beta1", "apps/v1beta2",
}  # fmt: skip
PREFIX = "operators.operatorframework.io.bundle"


@dataclass
class Bundle:
    """A bundle as OLM reads it: the first document of each file, which must not be empty."""

    csv: Manifest = field(default_factory=dict)
    definitions: list[Manifest] = field(default_factory=list)
    others: list[Manifest] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    size: int = 0


def read(folder: Path) -> Bundle:
    found = Bundle()
    csvs = []
    for path in sorted((folder / "manifests").iterdir()):
        text = path.read_text(encoding="utf-8")
        document = first(text)
        found.size += len(base64.b64encode(gzip.compress(text.encode())))
        kind = document.get("kind")
        if kind == "ClusterServiceVersion":
            csvs.append(document)
        elif kind == "CustomResourceDefinition":
            found.definitions.append(document)
        else:
            found.others.append(document)
    (found.csv,) = csvs
    found.annotations = first((folder / "metadata" / "annotations.yaml").read_text())["annotations"]
    return found


def first(text: str) -> Manifest:
    """A file's first document. Text before a document start is a document, even if it has only comments."""
    part = re.split(r"^---.*$", text.removeprefix("---\n"), maxsplit=1, flags=re.MULTILINE)[0]
    return definitions.load(part) or {}


def named(bundle: Bundle) -> Iterator[str]:
    name = bundle.csv["metadata"]["name"]
    version = bundle.csv["spec"].get("version", "")
    if not SEMVER.fullmatch(version):
        yield f"spec.version: {version!r} is no semantic version"
    if name != f"{bundle.annotations.get(f'{PREFIX}.package.v1')}.v{version}":
        yield f"metadata.name: {name} is not <package>.v<version>"
    # OLM uses it as a label value
    if len(name) > 63 or not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name):
        yield f"metadata.name: {name} is no DNS name of up to 63 characters"


def described(bundle: Bundle) -> Iterator[str]:
    spec = bundle.csv["spec"]
    for key in ("displayName", "description", "keywords", "maturity"):
        if not spec.get(key):
            yield f"spec.{key} is empty"
    if spec.get("maturity") not in MATURITIES:
        yield f"spec.maturity: {spec.get('maturity')}"
    if not spec.get("provider", {}).get("name", "").strip():
        yield "spec.provider.name is empty"
    if not SEMVER.fullmatch(spec.get("minKubeVersion", "")):
        yield f"spec.minKubeVersion: {spec.get('minKubeVersion')!r} is no semantic version"
    for entry in spec.get("maintainers", []):
        if not entry.get("name") or "@" not in entry.get("email", ""):
            yield "spec.maintainers: each has a name and an e-mail address"
    for entry in spec.get("links", []):
        if not entry.get("name") or not re.match(r"https?://", entry.get("url", "")):
            yield "spec.links: each has a name and an address"
    icons = spec.get("icon", [])
    if len(icons) != 1 or icons[0].get("mediatype") not in PICTURES or not icons[0].get("base64data"):
        yield "spec.icon: one picture, in a format that is known"


def annotated(bundle: Bundle) -> Iterator[str]:
    given = bundle.csv["metadata"]["annotations"]
    if given.get("capabilities") not in CAPABILITIES:
        yield f"annotation capabilities: {given.get('capabilities')}"
    for category in given.get("categories", "").split(","):
        if category.strip() not in CATEGORIES:
            yield f"annotation categories: {category}"
    if len(given.get("description", "")) == 0:
        yield "annotation description is empty"
    images = [c["image"] for one in deployments(bundle) for c in one["spec"]["template"]["spec"]["containers"]]
    if given.get("containerImage") not in images:
        yield f"annotation containerImage: {given.get('containerImage')} is not what is deployed"
    if not all(isinstance(value, str) for value in given.values()):
        yield "annotations are strings"


def kinds(bundle: Bundle) -> set[tuple[str, str, str]]:
    """Group, version and kind of the CRDs that the CSV owns."""
    owned = bundle.csv["spec"]["customresourcedefinitions"]["owned"]
    return {(one["name"].partition(".")[2], one["version"], one["kind"]) for one in owned}


def exemplified(bundle: Bundle) -> Iterator[str]:
    try:
        examples = json.loads(bundle.csv["metadata"]["annotations"].get("alm-examples", ""))
    except ValueError as error:
        yield f"alm-examples: {error}"
        return
    shown = {(*one["apiVersion"].split("/"), one["kind"]) for one in examples}
    yield from (f"alm-examples: {one} is none of what is owned" for one in sorted(shown - kinds(bundle)))
    yield from (f"alm-examples: none of {one}" for one in sorted(kinds(bundle) - shown))


def installable(bundle: Bundle) -> Iterator[str]:
    spec = bundle.csv["spec"]
    modes = [one["type"] for one in spec.get("installModes", [])]
    if len(modes) != len(set(modes)) or set(modes) != INSTALL_MODES:
        yield f"spec.installModes: {modes}"
    if not any(one["supported"] for one in spec.get("installModes", [])):
        yield "spec.installModes: none is supported"
    if spec["install"]["strategy"] != "deployment" or not deployments(bundle):
        yield "spec.install: there is no deployment"
    for one in deployments(bundle):
        if one["spec"]["selector"]["matchLabels"].items() - one["spec"]["template"]["metadata"]["labels"].items():
            yield f"deployment {one['name']}: its selector does not match its pods"
        for container in one["spec"]["template"]["spec"]["containers"]:
            if set(container.get("resources", {}).get("requests", {})) < {"cpu", "memory"}:
                yield f"container {container['name']}: it requests no CPU or no memory"


def deployments(bundle: Bundle) -> list[Manifest]:
    return list(bundle.csv["spec"]["install"]["spec"].get("deployments", []))


def grants(bundle: Bundle) -> list[Manifest]:
    install = bundle.csv["spec"]["install"]["spec"]
    return [*install.get("permissions", []), *install.get("clusterPermissions", [])]


def permitted(bundle: Bundle) -> Iterator[str]:
    accounts = {one["spec"]["template"]["spec"]["serviceAccountName"] for one in deployments(bundle)}
    for grant in grants(bundle):
        if grant["serviceAccountName"] not in accounts:
            yield f"permissions: {grant['serviceAccountName']} runs nothing"
        for rule in grant["rules"]:
            if "customresourcedefinitions" in rule["resources"] and {"create", "patch", "*"} & {*rule["verbs"]}:
                yield "permissions: definitions are OLM's to make"
            if "poddisruptionbudgets" in rule["resources"] and {"create", "update", "patch", "*"} & {*rule["verbs"]}:
                yield "permissions: disruption budgets are not the operator's to make"
    for other in bundle.others:
        if other["kind"] == "ServiceAccount" and other["metadata"]["name"] in accounts:
            yield f"ServiceAccount {other['metadata']['name']}: OLM makes it"


def defined(bundle: Bundle) -> Iterator[str]:
    there = {
        (one["spec"]["group"], version["name"], one["spec"]["names"]["kind"]): one["metadata"]["name"]
        for one in bundle.definitions
        for version in one["spec"]["versions"]
    }
    yield from (f"owned: {one} is not in the bundle" for one in sorted(kinds(bundle) - set(there)))
    owned = {one["name"] for one in bundle.csv["spec"]["customresourcedefinitions"]["owned"]}
    yield from (f"{name} is in the bundle, and not owned" for name in sorted(set(there.values()) - owned))
    if len({one["metadata"]["name"] for one in bundle.definitions}) != len(bundle.definitions):
        yield "a definition is there twice"
    for one in bundle.csv["spec"]["customresourcedefinitions"]["owned"]:
        if not one.get("description") or not one.get("displayName"):
            yield f"owned: {one['name']} is not described"


def budgeted(bundle: Bundle) -> Iterator[str]:
    for one in bundle.others:
        if one["kind"] != "PodDisruptionBudget":
            continue
        if one["spec"].get("maxUnavailable") in (0, "0%") or one["spec"].get("minAvailable") == "100%":
            yield "PodDisruptionBudget: a node could never be drained"
        labels = [d["spec"]["template"]["metadata"]["labels"].items() for d in deployments(bundle)]
        if not any(one["spec"]["selector"]["matchLabels"].items() <= given for given in labels):
            yield "PodDisruptionBudget: it is about none of the pods"


def current(bundle: Bundle) -> Iterator[str]:
    for one in [*bundle.definitions, *bundle.others]:
        if one.get("apiVersion") in REMOVED_APIS or not one.get("apiVersion"):
            yield f"{one.get('kind')} {one.get('apiVersion')}: no longer served"


def labelled(bundle: Bundle) -> Iterator[str]:
    for key in ("mediatype", "manifests", "metadata", "package", "channels", "channel.default"):
        if not bundle.annotations.get(f"{PREFIX}.{key}.v1"):
            yield f"annotations.yaml: {key} is missing"
    channels = bundle.annotations.get(f"{PREFIX}.channels.v1", "").split(",")
    if bundle.annotations.get(f"{PREFIX}.channel.default.v1") not in channels:
        yield "annotations.yaml: the default channel is none of the channels"
    for channel in channels:
        if not channel.startswith(("candidate", "fast", "stable")):
            yield f"annotations.yaml: the channel {channel} is none of candidate, fast and stable"
    if bundle.annotations.get(f"{PREFIX}.mediatype.v1") != "registry+v1":
        yield "annotations.yaml: mediatype is registry+v1"


def small(bundle: Bundle) -> Iterator[str]:
    if bundle.size > LARGEST * 0.85:
        yield f"{bundle.size} bytes are more than OLM can keep, or soon will be"


RULES: tuple[Callable[[Bundle], Iterator[str]], ...] = (
    named, described, annotated, exemplified, installable, permitted, defined, budgeted, current, labelled, small,
)  # fmt: skip


def problems(bundle: Bundle) -> list[str]:
    return [problem for rule in RULES for problem in rule(bundle)]
