"""Helpers to read unvalidated input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def as_mapping(value: Any) -> Mapping[str, Any]:
    """``value`` if it is a mapping, otherwise an empty mapping."""
    return value if isinstance(value, Mapping) else {}
