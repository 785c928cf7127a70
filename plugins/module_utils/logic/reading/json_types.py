"""Which values of a manifest JSON cannot carry, as a date that a YAML library has made of a string."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any


def without_json(value: Any, path: str = "") -> str:
    """Return a sentence about the first value in ``value`` that JSON has no type for, with its field; "" for none."""
    if value is None or isinstance(value, str | bool | int):
        return ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f"{path}: {value} is no number that JSON has"
    if isinstance(value, Mapping):
        return next(
            filter(None, (without_json(item, f"{path}.{key}" if path else str(key)) for key, item in value.items())), ""
        )
    if isinstance(value, list | tuple):
        return next(filter(None, (without_json(item, f"{path}[{index}]") for index, item in enumerate(value))), "")
    if isinstance(value, datetime.datetime):
        return f"{path}: {value.isoformat(' ')} is a point in time, not a string"
    if isinstance(value, datetime.date):
        return f"{path}: {value.isoformat()} is a date, not a string"
    return f"{path}: a value of the type {type(value).__name__}, which JSON lacks"
