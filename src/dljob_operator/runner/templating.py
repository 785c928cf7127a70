"""Mark the strings that Ansible must not template: ansible-core 2.19 marks trusted strings, 2.18 unsafe ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.utils.unsafe_proxy import wrap_var

try:
    from ansible.template import trust_as_template as _trust
except ImportError:  # ansible-core 2.18, where a string is a template unless it is marked

    def _trust(value: str) -> str:
        return value


def mark(values: Mapping[str, Any], unsafe: frozenset[str]) -> dict[str, Any]:
    """Return `values` as extra variables; strings within those named in `unsafe` are never templated."""
    return {name: wrap_var(value) if name in unsafe else _each_string(value, _trust) for name, value in values.items()}


def _each_string(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _each_string(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_each_string(item, change) for item in value]
    return value
