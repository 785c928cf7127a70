"""Checks of the values of a declaration. Each error names the place and what is expected there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.errors import InvalidFramework


def known(where: str, declared: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Refuse the keys of ``declared`` that are not among ``keys``."""
    unknown = sorted(set(declared).difference(keys))
    if unknown:
        raise InvalidFramework(f"unknown key {unknown[0]!r} in {where}; there are: {', '.join(sorted(keys))}")


def mapping(where: str, value: Any) -> Mapping[str, Any]:
    """``value``, if it is a mapping."""
    if not isinstance(value, Mapping):
        raise InvalidFramework(f"{where} must be a mapping, not {value!r}")
    return value


def sequence(where: str, value: Any) -> Sequence[Any]:
    """``value``, if it is a list."""
    if not isinstance(value, (list, tuple)):
        raise InvalidFramework(f"{where} must be a list, not {value!r}")
    return value


def texts(where: str, value: Any) -> tuple[str, ...]:
    """``value`` as a tuple, if it is a list of strings."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise InvalidFramework(f"{where} must be a list of strings, not {value!r}")
    return tuple(value)


def text(where: str, value: Any) -> str:
    """``value``, if it is a string."""
    if not isinstance(value, str):
        raise InvalidFramework(f"{where} must be a string, not {value!r}")
    return value


def choice(where: str, value: Any, choices: Sequence[str]) -> str:
    """``value``, if it is one of ``choices``."""
    if value not in choices:
        raise InvalidFramework(f"{where}: {value!r} is none of {', '.join(choices)}")
    return str(value)
