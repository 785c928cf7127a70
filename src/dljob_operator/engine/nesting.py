"""The limit for the nesting of objects.

A tenant can nest fields of a pod template that the CRD does not list, which the API server stores as they are. Python
reads no JSON of more than about 1,000 levels, so one such object would make every list of its kind fail; and everything
that walks through an object recursively fails much earlier.
"""

from __future__ import annotations

from typing import Any

LIMIT = 100
"""Levels. The deepest fields of a PodTemplateSpec have about twenty."""


def is_too_deep(obj: Any) -> bool:
    """Whether `obj` has more than LIMIT levels of mappings and lists. It does not recurse."""
    level = [obj]
    for _ in range(LIMIT + 1):
        level = [
            child
            for holder in level
            for child in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True
