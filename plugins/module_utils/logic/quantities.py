"""Quantities in a pod template. The API server's own error for a malformed one names no field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_QUANTITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,2})?", re.ASCII)
"""https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"""


def malformed(spec: Mapping[str, Any], path: str) -> Iterator[str]:
    """A message for each malformed quantity of a pod's ``spec``, which is at ``path``.

    These are the resources of the pod and of its containers, its overhead, and the sizes of its emptyDir volumes.
    A quantity is a string or a number. Maps and lists of a wrong type around it are left to the API server, which names
    their fields.
    """
    for where, given in _quantities(spec, path):
        if not _is_quantity(given):
            yield f"{where}: {str(given)[:40]!r} is no quantity: write for example 500m or 4Gi"


def _is_quantity(given: Any) -> bool:
    if isinstance(given, str):
        return _QUANTITY.fullmatch(given) is not None
    return given is None or (isinstance(given, int | float) and not isinstance(given, bool))


def _quantities(spec: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    yield from _resources(spec.get("resources"), f"{path}.resources")
    yield from _values(spec.get("overhead"), f"{path}.overhead")
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(_list(spec.get(kind))):
            yield from _resources(_map(container).get("resources"), f"{path}.{kind}[{number}].resources")
    for number, volume in enumerate(_list(spec.get("volumes"))):
        empty_dir = _map(_map(volume).get("emptyDir"))
        yield f"{path}.volumes[{number}].emptyDir.sizeLimit", empty_dir.get("sizeLimit")


def _resources(resources: Any, path: str) -> Iterator[tuple[str, Any]]:
    for field in ("limits", "requests"):
        yield from _values(_map(resources).get(field), f"{path}.{field}")


def _values(given: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, value in _map(given).items():
        yield f"{path}[{name}]", value


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
