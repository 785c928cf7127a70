"""The replicas that have succeeded, stored in the status, so that a replica does not run again when its pod is deleted.

The format is that of a batch Job's completedIndexes: ``{"worker": "0-2,5"}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Completed = dict[str, set[int]]

_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
"""The highest index has at most six digits."""


def read(value: object) -> Completed:
    """Read the status field. Malformed parts are ignored, so that at most a replica runs again."""
    if not isinstance(value, Mapping):
        return {}
    return {str(type_): _indexes(str(text)) for type_, text in value.items()}


def _indexes(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match:
            found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found


def write(completed: Completed) -> dict[str, str]:
    """The status field, without types that have no completed replica."""
    return {type_: _ranges(indexes) for type_, indexes in sorted(completed.items()) if indexes}


def _ranges(indexes: set[int]) -> str:
    ranges: list[list[int]] = []
    for index in sorted(indexes):
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)
