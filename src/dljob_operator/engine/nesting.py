"""The limit for the nesting of objects.

A tenant can nest fields of a pod template that the CRD does not list, which the API server stores as they are. Python
reads no JSON of more than about 1,000 levels, so one such object would make every list of its kind fail; and everything
that walks through an object recursively fails much earlier.
"""

from __future__ import annotations

import json
import re
from typing import Any

LIMIT = 100
"""Levels. The deepest fields of a PodTemplateSpec have about twenty."""


UNREADABLE = "unreadable"
"""The key of an event of which only the identity of the object could be read."""

_TOKEN = re.compile(rb'(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")\s*(?P<key>:)?|(?P<opens>[{\[])|(?P<closes>[}\]])')
_IDENTITY = ("name", "namespace", "uid", "resourceVersion")


def read_event(line: bytes) -> dict[str, Any]:
    """A watch event; of one that is nested too deeply to be decoded its type and the identity of the object.

    Raises RecursionError where such an event has none. To list again instead would take as long as the kind has
    objects, with each change of one of them.
    """
    try:
        event: dict[str, Any] = json.loads(line)
    except RecursionError:
        event = _outline(line)
        if not event["object"]["metadata"].keys() >= {"name", "uid", "resourceVersion"}:
            raise
    return event


def _outline(line: bytes) -> dict[str, Any]:
    """Read ``type`` and ``object.metadata`` token by token, without recursion."""
    metadata: dict[str, str] = {}
    event = {"type": "", UNREADABLE: True, "object": {"metadata": metadata}}
    level, keys = 0, ["", "", "", ""]
    for token in _TOKEN.finditer(line):
        if token["text"] is None:
            level += 1 if token["opens"] else -1
        elif level > 3:
            continue
        elif token["key"]:
            keys[level] = json.loads(token["text"])
        elif level == 1 and keys[1] == "type":
            event["type"] = json.loads(token["text"])
        elif level == 3 and keys[1:3] == ["object", "metadata"] and keys[3] in _IDENTITY:
            metadata[keys[3]] = json.loads(token["text"])
    return event


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
