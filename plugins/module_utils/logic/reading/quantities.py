"""Quantities in a pod template. The API server's own error for a malformed one names no field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.logic.reading.mappings import as_list, as_mapping

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(\d+(\.\d*)?|\.\d+))((?P<suffix>[numkMGTPE]|[KMGTPE]i)|(?P<exponent>[eE][+-]?\d{1,2}))?", re.ASCII
)
"""https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/"""
_FACTORS = {
    **{suffix: Decimal(1).scaleb(3 * power) for power, suffix in enumerate("num", -3)},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}


def amount(given: Any) -> Decimal:
    """The value of a quantity, which is well-formed."""
    found = _QUANTITY.fullmatch(str(given))
    if found is None:
        raise ValueError(f"{str(given)[:40]!r} is no quantity")
    return Decimal(found["number"] + (found["exponent"] or "")) * _FACTORS.get(found["suffix"], 1)


def malformed(spec: Mapping[str, Any], path: str) -> Iterator[str]:
    """A message for each malformed quantity of a pod's ``spec``, which is at ``path``.

    These are the resources of the pod and of its containers, its overhead, and the sizes of its emptyDir volumes.
    A quantity is a string or a number. Maps and lists of a wrong type around it are left to the API server, which names
    their fields.
    """
    yield from _malformed(_quantities(spec, path))


def malformed_values(given: Any, path: str) -> Iterator[str]:
    """The same for the map ``given`` of quantities by name."""
    yield from _malformed(_values(given, path))


def _malformed(quantities: Iterable[tuple[str, Any]]) -> Iterator[str]:
    for where, given in quantities:
        if given is not None and not is_quantity(given):
            yield f"{where}: {str(given)[:40]!r} is no quantity: write for example 500m or 4Gi"


def is_quantity(given: Any) -> bool:
    """Whether :func:`amount` has a value for ``given``."""
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        return _QUANTITY.fullmatch(str(given)) is not None
    return False


def _quantities(spec: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    yield from _resources(spec.get("resources"), f"{path}.resources")
    yield from _values(spec.get("overhead"), f"{path}.overhead")
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(as_list(spec.get(kind))):
            yield from _resources(as_mapping(container).get("resources"), f"{path}.{kind}[{number}].resources")
    for number, volume in enumerate(as_list(spec.get("volumes"))):
        empty_dir = as_mapping(as_mapping(volume).get("emptyDir"))
        yield f"{path}.volumes[{number}].emptyDir.sizeLimit", empty_dir.get("sizeLimit")


def _resources(resources: Any, path: str) -> Iterator[tuple[str, Any]]:
    for field in ("limits", "requests"):
        yield from _values(as_mapping(resources).get(field), f"{path}.{field}")


def _values(given: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, value in as_mapping(given).items():
        yield f"{path}[{name}]", value
