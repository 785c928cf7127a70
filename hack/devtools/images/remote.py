"""What the local registry serves under a name, by the label that says what it was built from."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from devtools.cluster.kindcluster import path_component
from devtools.cluster.registry import parse_image_name
from devtools.images.context import LABEL

MANIFEST_TYPES = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"


def content(port: int, name: str) -> str | None:
    """The content key of the image that the registry on 127.0.0.1 serves as ``name``; None if it has none."""
    image = parse_image_name(name)
    repository = f"http://127.0.0.1:{port}/v2/{path_component(image.registry)}/{image.repository}"
    try:
        manifest = _get(f"{repository}/manifests/{image.tag}")
        config = _get(f"{repository}/blobs/{manifest['config']['digest']}")
    except (urllib.error.URLError, KeyError, ValueError):
        # not there, half of it gone, or no plain image: pushing it again is right in each case
        return None
    return ((config.get("config") or {}).get("Labels") or {}).get(LABEL)


def _get(url: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": MANIFEST_TYPES}), timeout=10) as answer:
        return json.load(answer)
