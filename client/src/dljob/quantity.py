"""Quantities of the API, such as ``100m``, ``1.5Gi`` and ``1e3``."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

_UNITS = {
    **{unit: Decimal(1000) ** power for power, unit in enumerate(("n", "u", "m", "", *"kMGTPE"), -3)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}
_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?"
)


def parse(value: Any) -> Decimal:
    """The amount; 0 for what is no quantity."""
    return _parse(str(value))


@lru_cache(1024)
def _parse(text: str) -> Decimal:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return Decimal(0)
    number, unit, exponent = match.groups()
    return Decimal(number) * (Decimal(10) ** int(exponent) if exponent else _UNITS[unit or ""])


def text(resource: str, amount: Decimal) -> str:
    """An amount for people: bytes in GiB, all others as a number."""
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return f"{_number(amount / 1024**3)} GiB of {resource}"
    return f"{_number(amount)} {resource}"


def _number(amount: Decimal) -> str:
    return f"{amount:.2f}".rstrip("0").rstrip(".") or "0"
