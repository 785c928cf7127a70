"""The limit for the nesting of objects.

A tenant can nest fields of a pod template that the CRD does not list, which the API server stores as they are. Python
reads no JSON of more than about 1,000 levels, so one such object would make every list of its kind fail; and everything
that walks through an object recursively fails much earlier.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

from ansible_collections.dljob.operator.plugins.module_utils.shared.json_codec import loads

from dljob_operator import logs

LIMIT = 100
"""Levels. The deepest fields of a PodTemplateSpec have about twenty."""


UNREADABLE = "unreadable"
"""The key of an event, or of an item of a list, of which only the identity of the object could be read."""

_TOKEN = re.compile(rb'(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")\s*(?P<key>:)?|(?P<opens>[{\[])|(?P<closes>[}\]])')
_IDENTITY = ("name", "namespace", "uid", "resourceVersion")


def read_event(line: bytes, decode: Callable[[bytes], Any] = loads) -> dict[str, Any]:
    """A watch event as `decode` returns it; of one that is nested too deeply its type and the identity of the object.

    Raises RecursionError where such an event has none. To list again instead would take as long as the kind has
    objects, with each change of one of them.
    """
    try:
        event: dict[str, Any] = decode(line)
    except RecursionError:
        type_, metadata = _outline(line, "object", "metadata")
        event = {"type": type_, UNREADABLE: True, "object": {"metadata": metadata}}
    return event


def outline_list(text: bytes) -> dict[str, Any]:
    """A list that is nested too deeply to be decoded, with only the identity of each item above LIMIT.

    The API server could send the metadata of the objects alone. That does not help: their managedFields repeat the
    levels of the spec. Raises RecursionError where such an item has no identity, or where no item is to blame.
    """
    found = list(_items(text))
    if not found:
        raise RecursionError("no item of the list is to blame")
    decoded: dict[str, Any] = json.loads(text[: found[0][0]] + text[found[-1][1] :])
    decoded["items"] = [_item(text[begin:end], levels) for begin, end, levels in found]
    return decoded


def _items(text: bytes) -> Iterator[tuple[int, int, int]]:
    """The begin, end and number of levels of each element of ``items``, token by token, without recursion."""
    level = deepest = begin = 0
    key = b""
    for token in _TOKEN.finditer(text):
        if token["text"] is not None:
            if level == 1 and token["key"]:
                key = token["text"]
        elif token["opens"]:
            level += 1
            if level == 3:
                begin, deepest = token.start(), level
            deepest = max(deepest, level)
        else:
            if level == 3 and key == b'"items"':
                yield begin, token.end(), deepest - 2
            level -= 1


def _item(text: bytes, levels: int) -> dict[str, Any]:
    if levels > LIMIT:
        return {UNREADABLE: True, "metadata": _outline(text, "metadata")[1]}
    item: dict[str, Any] = json.loads(text)
    return item


def _outline(text: bytes, *path: str) -> tuple[str, dict[str, str]]:
    """The ``type``, "" if there is none, and the identity in the metadata at ``path``, token by token."""
    metadata: dict[str, str] = {}
    type_, level, lowest = "", 0, len(path) + 1
    keys = [""] * (lowest + 1)
    for token in _TOKEN.finditer(text):
        if token["text"] is None:
            level += 1 if token["opens"] else -1
        elif level > lowest:
            continue
        elif token["key"]:
            keys[level] = json.loads(token["text"])
        elif level == 1 and keys[1] == "type":
            type_ = json.loads(token["text"])
        elif level == lowest and keys[1:lowest] == list(path) and keys[lowest] in _IDENTITY:
            metadata[keys[lowest]] = json.loads(token["text"])
    if not metadata.keys() >= {"name", "uid", "resourceVersion"}:
        raise RecursionError("an object is nested too deeply, and has no identity")
    return type_, metadata


def log_ignored(log: logging.Logger, **fields: object) -> None:
    """Log in ``log`` that an object, which ``fields`` identify, is left out."""
    log.warning("object ignored: its fields are nested too deeply", extra=logs.fields(**fields, limit=LIMIT))


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
