"""Install the custom resource definitions that lie beside the roles (`dljob-operator run --install-crds`)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import yaml

from dljob_operator.engine.discovery import Resource
from dljob_operator.engine.kube import KubeApi, Unreachable

_LOG = logging.getLogger(__name__)
_CRDS = Resource("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)
_MANAGER = "dljob-operator"
_PATIENCE = 30.0  # seconds for a definition to be served


def read_crds(directory: Path) -> list[dict[str, Any]]:
    """Return the definitions in `directory`'s YAML files. Raises ValueError where there is none."""
    documents = [
        document
        for path in sorted((*directory.glob("*.yaml"), *directory.glob("*.yml")))
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition"
    ]
    if not documents:
        raise ValueError(f"{directory} has no CustomResourceDefinition; name the directory with --crds-dir")
    return documents


def install_crds(api: KubeApi, directory: Path) -> list[str]:
    """Apply the definitions in `directory`, wait until each is served, and return their names."""
    names = []
    for definition in read_crds(directory):
        name = definition["metadata"]["name"]
        api.request(
            "PATCH",
            _CRDS.item("", name),
            definition,
            query={"fieldManager": _MANAGER, "force": "true"},
            content_type="application/apply-patch+yaml",
        )
        _wait_established(api, name)
        _LOG.info("installed the definition %s", name)
        names.append(name)
    return names


def _wait_established(api: KubeApi, name: str) -> None:
    query = {"fieldSelector": f"metadata.name={name}", "timeoutSeconds": int(_PATIENCE)}
    with api.watch(_CRDS.collection(), query, _PATIENCE) as stream:
        for event in stream:
            if _is_established(event["object"]):
                return
    raise Unreachable(f"{name} was not served within {_PATIENCE:.0f} s; see kubectl describe crd {name}")


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
