"""Quantities in a pod template. The API server's own error for a malformed one names no field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_QUANTITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?", re.ASCII)
"""https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"""
_FIELDS = ("limits", "requests")


def malformed(spec: Mapping[str, Any], path: str) -> Iterator[str]:
    """A message for each malformed quantity in the resources of the containers of a pod's ``spec``, at ``path``.

    Values of other types than Kubernetes expects are left to the API server.
    """
    for kind in ("initContainers", "containers"):
        containers = spec.get(kind)
        for number, container in enumerate(containers if isinstance(containers, list) else ()):
            resources = container.get("resources") if isinstance(container, Mapping) else None
            for field in _FIELDS if isinstance(resources, Mapping) else ():
                given = resources.get(field)
                for name, value in (given if isinstance(given, Mapping) else {}).items():
                    if isinstance(value, str) and not _QUANTITY.fullmatch(value):
                        where = f"{path}.{kind}[{number}].resources.{field}"
                        yield f"{where}: {name} is {value[:40]!r}, which is no quantity: write for example 500m or 4Gi"
