"""The API server answers no definition with a warning, which kubectl and the operator's log would show at each installation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from kubernetes import client

ROOT = Path(__file__).resolve().parents[3]
DEFINITIONS = sorted((ROOT / "crds").glob("*.yaml"))
GROUP = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def warnings_of(api: client.ApiClient, definition: dict[str, object], name: str) -> list[str]:
    """The headers Warning in the response to a server-side apply that stores nothing."""
    response = api.rest_client.pool_manager.request(
        "PATCH",
        f"{api.configuration.host}{GROUP}/{name}?dryRun=All&fieldManager=warnings&force=true",
        body=json.dumps(definition),
        headers={"Content-Type": "application/apply-patch+yaml"},
    )
    assert response.status in (200, 201), response.data
    return response.headers.getlist("Warning")


@pytest.mark.parametrize("path", DEFINITIONS, ids=[path.stem for path in DEFINITIONS])
def test_a_definition_causes_no_warning(api: client.ApiClient, crds: None, path: Path) -> None:
    definition = yaml.safe_load(path.read_text())
    assert warnings_of(api, definition, definition["metadata"]["name"]) == []


def test_a_warning_would_be_seen(api: client.ApiClient, crds: None) -> None:
    """The server warns of a format that it does not know."""
    definition = yaml.safe_load(DEFINITIONS[0].read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["madeUp"] = {"type": "string", "format": "made-up"}
    assert "made-up" in "".join(warnings_of(api, definition, definition["metadata"]["name"]))
