"""Conversion of Ansible's tagged values to built-in types: JSON and YAML cannot carry the tags (origin, trust)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def to_builtin(value: Any) -> Any:
    """A deep copy of ``value`` made of dict, list, str, int, float, bool and None only; nothing is templated."""
    if isinstance(value, Mapping):
        return {str.__str__(k) if isinstance(k, str) else k: to_builtin(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_builtin(v) for v in value]
    if isinstance(value, bool) or value is None:
        return value
    for base in (str, int, float):
        if isinstance(value, base):
            return str.__str__(value) if base is str else base(value)
    return value
