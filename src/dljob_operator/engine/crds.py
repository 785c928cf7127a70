"""Install the custom resource definitions that lie beside the roles (`dljob-operator run --install-crds`)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dljob_operator.engine.discovery import Resource
from dljob_operator.engine.kube import ApiConnectionError, ApiError, KubeApi

_LOG = logging.getLogger(__name__)
CRDS = Resource("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)
CREATED_BY = "dljob.operator/created-by"
_MANAGER = "dljob-operator"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's reads our definitions six times as fast
_PATIENCE = 30.0  # seconds for a definition to be served


def read_crds(directory: Path) -> list[dict[str, Any]]:
    """Return the definitions in `directory`'s YAML files. Raises ValueError where there is none."""
    documents = [
        document
        for path in sorted((*directory.glob("*.yaml"), *directory.glob("*.yml")))
        for document in yaml.load_all(path.read_text(encoding="utf-8"), Loader=_LOADER)
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition"
    ]
    if not documents:
        raise ValueError(f"{directory} has no CustomResourceDefinition; name the directory with --crds-dir")
    return documents


@dataclass(frozen=True)
class Installed:
    """A definition that is served. `created` tells that it was not there before and was made under a mark."""

    name: str
    uid: str
    created: bool
    group: str
    version: str
    plural: str
    namespaced: bool


def install_crds(
    api: KubeApi, directory: Path, mark: str = "", installed: list[Installed] | None = None
) -> list[Installed]:
    """Apply the definitions in `directory` and wait until each is served.

    With a `mark`, those that are not there yet are created, not applied, so that nobody else can have created them, and
    carry the mark in an annotation, for people to know whose they are. Each is added to `installed` as soon as it is
    there: who is to take it away again knows of it even where the next one fails.
    """
    installed = [] if installed is None else installed
    for definition in read_crds(directory):
        name = definition["metadata"]["name"]
        made = _create(api, definition, mark) if mark else None
        held = made or _apply(api, definition)
        spec = held["spec"]
        installed.append(
            Installed(
                name=name,
                uid=held["metadata"]["uid"],
                created=made is not None,
                group=spec["group"],
                version=next(v["name"] for v in spec["versions"] if v["served"]),
                plural=spec["names"]["plural"],
                namespaced=spec["scope"] == "Namespaced",
            )
        )
        other = (held["metadata"].get("annotations") or {}).get(CREATED_BY)
        if mark and made is None and other:
            _LOG.info("%s was created by another run, %s, and stays when this one ends", name, other)
        _wait_established(api, name)
        _LOG.info("%s the definition %s", "created" if made else "installed", name)
    return installed


def _apply(api: KubeApi, definition: dict[str, Any]) -> dict[str, Any]:
    return api.request(
        "PATCH",
        CRDS.item("", definition["metadata"]["name"]),
        definition,
        query={"fieldManager": _MANAGER, "force": "true"},
        content_type="application/apply-patch+yaml",
    )


def _create(api: KubeApi, definition: dict[str, Any], mark: str) -> dict[str, Any] | None:
    """Create the definition; None where there is one of that name."""
    metadata = definition["metadata"]
    marked = {**metadata, "annotations": {**(metadata.get("annotations") or {}), CREATED_BY: mark}}
    try:
        return api.request(
            "POST", CRDS.collection(), {**definition, "metadata": marked}, query={"fieldManager": _MANAGER}
        )
    except ApiError as error:
        if error.status != 409:
            raise
        return None


def _wait_established(api: KubeApi, name: str) -> None:
    query = {"fieldSelector": f"metadata.name={name}", "timeoutSeconds": int(_PATIENCE)}
    with api.watch(CRDS.collection(), query, _PATIENCE) as stream:
        for event in stream:
            if _is_established(event["object"]):
                return
    raise ApiConnectionError(f"{name} was not served within {_PATIENCE:.0f} s; see kubectl describe crd {name}")


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
