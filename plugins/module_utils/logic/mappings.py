"""Reading what somebody else wrote, whose shape nobody has vouched for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def as_mapping(value: Any) -> Mapping[str, Any]:
    """``value`` where it is a mapping, an empty one where it is anything else."""
    return value if isinstance(value, Mapping) else {}
