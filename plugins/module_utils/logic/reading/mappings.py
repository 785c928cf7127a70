"""Helpers to read unvalidated input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def as_mapping(value: Any) -> Mapping[str, Any]:
    """``value`` if it is a mapping, otherwise an empty mapping."""
    # most are dicts or missing, and the check of an abstract class is slow
    if type(value) is dict:
        return value
    return value if value is not None and isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:
    """``value`` if it is a list, otherwise an empty list."""
    return value if isinstance(value, list) else []


def as_count(value: Any) -> int:
    """``value`` if it is a whole number above 0, otherwise 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def maps(value: Any) -> list[Mapping[str, Any]]:
    """The mappings in ``value``; none where it is not a list."""
    return [item for item in as_list(value) if type(item) is dict or isinstance(item, Mapping)]
