"""Reads the content key label of an image in the local registry."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from devtools.build.images.context import LABEL
from devtools.testbed.cluster.kindcluster import path_component
from devtools.testbed.cluster.registry import parse_image_name

MANIFEST_TYPES = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"


def content(port: int, name: str) -> str | None:
    """The content key of the image ``name`` in the registry on 127.0.0.1; None if it has none."""
    image = parse_image_name(name)
    repository = f"http://127.0.0.1:{port}/v2/{path_component(image.registry)}/{image.repository}"
    try:
        manifest = _get(f"{repository}/manifests/{image.tag}")
        config = _get(f"{repository}/blobs/{manifest['config']['digest']}")
    except (urllib.error.URLError, KeyError, ValueError):
        # the image is missing, incomplete or not a plain image: in each case it has to be pushed again
        return None
    return ((config.get("config") or {}).get("Labels") or {}).get(LABEL)


def _get(url: str) -> Any:
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": MANIFEST_TYPES}), timeout=10) as answer:
        return json.load(answer)
