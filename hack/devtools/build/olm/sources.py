"""Reads the files from which the bundle is generated."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devtools.definitions import definitions, documents
from devtools.paths import ROOT

_KUSTOMIZE = ROOT / "deploy" / "kustomize"
_DEFAULT = _KUSTOMIZE / "default"
_SECTIONS = ("What it does", "Limits")
_LINK = re.compile(r"\[([^]]*)\]\((?!https?://)[^)]*\)")

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Sources:
    """The repository's documents; ``rules`` are the ones that the default overlay grants."""

    version: str
    provider: str
    summary: str
    urls: dict[str, str]
    readme: str
    min_kube_version: str
    definitions: list[Manifest]
    examples: list[Manifest]
    rules: list[Manifest]
    own_rules: list[Manifest]
    """The rules for the operator's own namespace only."""
    deployment: Manifest
    disruption_budget: Manifest
    user_roles: list[Manifest]
    """The ClusterRoles for the users of jobs."""
    icon: str
    """An SVG image, base64-encoded."""


def read(image: str = "") -> Sources:
    """Read all sources. ``image`` replaces the Deployment's image."""
    galaxy = _yaml(ROOT / "galaxy.yml")
    base = _KUSTOMIZE / "base"
    deployment = _yaml(base / "deployment.yaml")
    if image:
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] = image
    config = [d for d in documents(base / "config_role.yaml") if d["kind"] == "Role"]
    chart = _yaml(ROOT / "deploy" / "helm" / "dljob-operator" / "Chart.yaml")
    return Sources(
        version=galaxy["version"],
        provider=galaxy["authors"][0],
        summary=galaxy["description"],
        urls={key: galaxy[key] for key in ("repository", "documentation")},
        readme=(ROOT / "README.md").read_text(encoding="utf-8"),
        min_kube_version=chart["kubeVersion"].removeprefix(">=").removesuffix("-0"),
        definitions=[*definitions().values()],
        examples=[d for path in sorted((ROOT / "examples").glob("*.yaml")) for d in documents(path)],
        rules=[*_yaml(base / "cluster_role.yaml")["rules"], *_of_components()],
        own_rules=[rule for role in config for rule in role["rules"]],
        deployment=deployment,
        disruption_budget=_yaml(base / "disruption_budget.yaml"),
        user_roles=[_yaml(path) for path in sorted(base.glob("users_*.yaml"))],
        icon=base64.b64encode((Path(__file__).with_name("icon.svg")).read_bytes()).decode(),
    )


def description(readme: str) -> str:
    """What of the README a catalog shows: the text before the first heading, then the sections on features and limits.

    The sections on building and testing are omitted. Links to files of the repository are replaced by their text,
    because their targets are not in the catalog.
    """
    head, *sections = readme.split("\n## ")
    title, _, opening = head.partition("\n")
    if not title.startswith("# "):
        raise ValueError("README.md does not begin with its title")
    by_title = {section.partition("\n")[0]: section for section in sections}
    parts = [opening.strip(), *(f"## {by_title[name].strip()}" for name in _SECTIONS)]
    # the README's last line is the licence and not part of the section
    text = re.sub(r"\n+License: .*\Z", "", "\n\n".join(parts))
    return _LINK.sub(r"\1", text) + "\n"


def _of_components() -> list[Manifest]:
    """The rules that the components of the default overlay append.

    Raises ValueError for other patch operations, which this does not support.
    """
    steps = []
    for name in _yaml(_DEFAULT / "kustomization.yaml")["components"]:
        path = _DEFAULT / name / "rules.yaml"
        for step in _yaml(path):
            if (step["op"], step["path"]) != ("add", "/rules/-"):
                raise ValueError(f"{path}: {step['op']} {step['path']} does not append a rule, and is not supported")
            steps.append(step["value"])
    return steps


def _yaml(path: Path) -> Any:
    (document,) = documents(path)
    return document
