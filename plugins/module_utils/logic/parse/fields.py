"""The job that is being parsed, and readers of its single fields.

A reader adds what is wrong with a value to ``errors``, with the path of the field, and returns the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.values.framework import ApiFlavor, Framework

MAX_REPLICAS = 1_000_000
MAX_PORT = 65535
MAX_INT32 = 2**31 - 1
"""The largest number that the API server keeps in an int32 field."""


@dataclass(frozen=True, slots=True)
class Parsing:
    """The job that is being parsed. Its functions add what they find wrong to ``errors``."""

    options: Mapping[str, Any]
    """The spec, or an empty mapping where the spec is a list."""
    flavor: ApiFlavor
    framework: Framework
    errors: list[str]
    uid: str = ""
    """Of the job, or its name where it has none."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The default and the limits of a number."""

    default: int
    least: int
    most: int = MAX_INT32


def integer(value: Any, path: str, bounds: Bounds, errors: list[str]) -> int:
    """A whole number, or the default where the job has none."""
    if value is None:
        return bounds.default
    if isinstance(value, bool) or not isinstance(value, int):
        errors.append(f"{path} must be a whole number, not {value!r}")
        return bounds.default
    if not bounds.least <= value <= bounds.most:
        errors.append(f"{path} is {value}: it must be between {bounds.least} and {bounds.most}")
        return bounds.default
    return value


def optional_integer(value: Any, path: str, least: int, errors: list[str]) -> int | None:
    """A whole number from ``least`` on, or ``None`` where the job has none."""
    return None if value is None else integer(value, path, Bounds(least, least), errors)


def text(value: Any, path: str, errors: list[str]) -> str | None:
    """A string, or ``None`` where the job has none."""
    if value is not None and not isinstance(value, str):
        errors.append(f"{path} must be a string, not {value!r}")
        return None
    return value


def no_others(value: Mapping[str, Any], known: tuple[str, ...], path: str, errors: list[str]) -> None:
    """Add the keys that are not ``known`` to ``errors``."""
    for name in sorted(str(key) for key in value if key not in known):
        errors.append(f"{path}.{name} is unknown: use {', '.join(known)}")


def choice(value: Any, path: str, choices: tuple[str, ...], errors: list[str]) -> str:
    """The value if it is among the ``choices``, otherwise ""."""
    if isinstance(value, str) and value in choices:
        return value
    errors.append(f"{path}: {value!r} is none of {', '.join(choices)}")
    return ""
