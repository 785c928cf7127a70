"""Which replicas have succeeded, remembered beyond their pods: a deleted pod of a finished replica is not run again.

ApplyResult like a batch Job's completedIndexes: ``{"worker": "0-2,5"}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Completed = dict[str, set[int]]

_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
"""No more digits than the highest index can have."""


def read(held: object) -> Completed:
    """From the status; what cannot be read counts as nothing, which only means that a replica may run again."""
    if not isinstance(held, Mapping):
        return {}
    return {str(type_): _indexes(str(text)) for type_, text in held.items()}


def _indexes(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match:
            found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return found


def write(completed: Completed) -> dict[str, str]:
    """For the status; types without a completed replica are left out."""
    return {type_: _ranges(indexes) for type_, indexes in sorted(completed.items()) if indexes}


def _ranges(indexes: set[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
