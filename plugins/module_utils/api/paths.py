"""API paths of objects. All kinds are known, so no discovery is needed, which would cost a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def plural(kind: str) -> str:
    """The plural resource name of a kind; it matches the CRDs of the job kinds."""
    lower = kind.lower()
    return lower + ("es" if lower.endswith(("s", "x", "ch", "sh")) else "s")


def collection(api_version: str, kind: str, namespace: str) -> str:
    """The path of all objects of a kind in a namespace."""
    prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{prefix}/namespaces/{namespace}/{plural(kind)}"


def object_path(resource: Mapping[str, Any], subresource: str = "") -> str:
    """The path of one object."""
    metadata = resource["metadata"]
    path = f"{collection(resource['apiVersion'], resource['kind'], metadata['namespace'])}/{metadata['name']}"
    return f"{path}/{subresource}" if subresource else path
