"""Quantities of the API, such as ``100m`` and ``4Gi``."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

_SUFFIXES = {
    "n": Decimal(10) ** -9,
    "u": Decimal(10) ** -6,
    "m": Decimal(10) ** -3,
    "": Decimal(1),
    **{one: Decimal(1000) ** power for power, one in enumerate("kMGTPE", 1)},
    **{f"{one}i": Decimal(1024) ** power for power, one in enumerate("KMGTPE", 1)},
}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")


def parse(value: Any) -> Decimal:
    """The amount; 0 for what is no quantity."""
    match = _QUANTITY.fullmatch(str(value).strip())
    if not match:
        return Decimal(0)
    number, exponent, suffix = match.groups()
    return Decimal(number) * (Decimal(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""])


def text(resource: str, amount: Decimal) -> str:
    """An amount for people: bytes in GiB, all others as a number."""
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return f"{_number(amount / 1024**3)} GiB of {resource}"
    return f"{_number(amount)} {resource}"


def _number(amount: Decimal) -> str:
    return f"{amount:.2f}".rstrip("0").rstrip(".") or "0"
