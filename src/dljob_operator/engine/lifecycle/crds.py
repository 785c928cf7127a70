"""Install the custom resource definitions of the collection (`dljob-operator run --install-crds`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.dljob.operator.plugins.module_utils.shared.connection import APPLY
from ansible_collections.dljob.operator.plugins.module_utils.shared.names import MANAGER, OWN_PREFIX
from ansible_collections.dljob.operator.plugins.module_utils.shared.response import ApiError

from dljob_operator import logs
from dljob_operator.engine.discovery import ApiResource
from dljob_operator.engine.kube import ApiConnectionError, KubeApi

_LOG = logging.getLogger(__name__)
CRDS = ApiResource("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)
CREATED_BY = f"{OWN_PREFIX}created-by"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml parses our definitions six times as fast
_TIMEOUT = 30.0  # seconds for a definition to be served


def read_crds(directory: Path) -> list[dict[str, Any]]:
    """Return the definitions in the YAML files of `directory`. Raises ValueError if there is none."""
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
    """A served definition. `created` says that this process created it with a mark."""

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
    """Apply those definitions in `directory` that the cluster lacks or has otherwise, and wait until each is served.

    With a `mark`, missing definitions are created, not applied, so that no other process can have created them. They
    carry the mark in an annotation, so that users can find their creator. Each is added to `installed` as soon as it
    exists, so that the caller can delete it even if the next one fails.

    The API server keeps the definition of another operator that has stored objects in a version that ours lacks. That
    one is reported and left out, because the other kinds do not depend on it.
    """
    installed = [] if installed is None else installed
    for definition in read_crds(directory):
        name = definition["metadata"]["name"]
        present = _find(api, name)
        try:
            created = _create(api, definition, mark) if mark and present is None else None
            stored = created or (present if is_current(definition, present) else None) or _apply(api, definition)
        except ApiError as error:
            if not _has_other_versions(error):
                raise
            _LOG.warning(
                "another definition of this name stays, and its jobs are not watched: this operator has none of its "
                "stored versions; delete it if it has no objects, and restart",
                extra=logs.fields(crd=name, error=error),
            )
            continue
        spec = stored["spec"]
        installed.append(
            Installed(
                name=name,
                uid=stored["metadata"]["uid"],
                created=created is not None,
                group=spec["group"],
                version=next(v["name"] for v in spec["versions"] if v["served"]),
                plural=spec["names"]["plural"],
                namespaced=spec["scope"] == "Namespaced",
            )
        )
        other = (stored["metadata"].get("annotations") or {}).get(CREATED_BY)
        if mark and created is None and other:
            _LOG.info(
                "another process created the CustomResourceDefinition; it stays when this process ends",
                extra=logs.fields(crd=name, created_by=other),
            )
        if not _is_established(stored):
            _wait_established(api, name)
        _LOG.info("CustomResourceDefinition installed", extra=logs.fields(crd=name, created=created is not None))
    return installed


def _has_other_versions(error: ApiError) -> bool:
    """Whether the API server refused a definition for the sake of objects in versions that it lacks.

    It then names an item of the field. A definition without any version is refused for the field as a whole.
    """
    return error.status == 422 and "status.storedVersions[" in str(error)


def _find(api: KubeApi, name: str) -> dict[str, Any] | None:
    """Return the definition in the cluster; None if there is none, or if this process may not read it."""
    try:
        return api.get(CRDS.item("", name))
    except ApiError as error:
        if error.status not in (403, 404):
            raise
        return None


def is_current(definition: Mapping[str, Any], present: Mapping[str, Any] | None) -> bool:
    """Return whether applying `definition` would change nothing but the owners of fields in `present`.

    To apply a large definition costs the API server about twenty times the processor time of a read. All fields but
    the metadata must be equal, without defaults of the API server; labels and annotations of others do not count.
    """
    if present is None:
        return False
    pairs = [(definition.get(key), present.get(key)) for key in {"spec", *definition} - {"metadata"}]
    for key, wanted in definition["metadata"].items():
        found = present["metadata"].get(key)
        if isinstance(wanted, dict) and isinstance(found, dict):
            pairs += [(value, found.get(name)) for name, value in wanted.items()]
        else:
            pairs.append((wanted, found))
    return all(_is_same(wanted, found) for wanted, found in pairs)


def _is_same(wanted: object, found: object) -> bool:
    """Return whether both are the same JSON. Python's `==` takes 1, 1.0 and true for one value."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return wanted.keys() == found.keys() and all(_is_same(value, found[key]) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_is_same, wanted, found))
    return type(wanted) is type(found) and wanted == found


def _apply(api: KubeApi, definition: dict[str, Any]) -> dict[str, Any]:
    return api.request(
        "PATCH",
        CRDS.item("", definition["metadata"]["name"]),
        definition,
        query={"fieldManager": MANAGER, "force": "true"},
        content_type=APPLY,
    )


def _create(api: KubeApi, definition: dict[str, Any], mark: str) -> dict[str, Any] | None:
    """Create the definition; return None if one of that name exists."""
    metadata = definition["metadata"]
    marked = {**metadata, "annotations": {**(metadata.get("annotations") or {}), CREATED_BY: mark}}
    try:
        return api.request(
            "POST", CRDS.collection(), {**definition, "metadata": marked}, query={"fieldManager": MANAGER}
        )
    except ApiError as error:
        if error.status != 409:
            raise
        return None


def _wait_established(api: KubeApi, name: str) -> None:
    query = {"fieldSelector": f"metadata.name={name}", "timeoutSeconds": int(_TIMEOUT)}
    with api.watch(CRDS.collection(), query, _TIMEOUT) as stream:
        for event in stream:
            if event["type"] == "ERROR":
                status = event["object"]
                raise ApiError(
                    status.get("code", 500), status.get("reason", ""), status.get("message", "the watch ended")
                )
            if _is_established(event["object"]):
                return
    raise ApiConnectionError(f"{name} was not served within {_TIMEOUT:.0f} s; see kubectl describe crd {name}")


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
