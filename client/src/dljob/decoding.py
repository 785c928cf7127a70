"""Decodes what an API server answers, nonsense included. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from dljob.errors import ApiError
from dljob.kinds import Resource

ERROR = "ERROR"
"""The type of an event with which a watch has to begin again."""
_DEEPEST = 200
"""Levels of the objects of a list that cannot be decoded as a whole; those with more are left out."""
_OF_ITEMS = 2
"""Levels around an object of a list: the list and its ``items``."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
_BAD_GATEWAY = 502


def unreadable(what: str) -> ApiError:
    """That the API server answered with ``what``."""
    return ApiError(_BAD_GATEWAY, "", f"The API server answered with {what}.")


def answer(body: bytes) -> dict[str, Any]:
    """The object of an answer. Raises ApiError.

    In a list, ``None`` stands for each object that is nested too deeply to be decoded.
    """
    try:
        found = json.loads(body)
    except RecursionError:
        return _flat(body)
    except ValueError:
        raise unreadable("something else than JSON") from None
    if not isinstance(found, dict):
        raise unreadable("something else than an object")
    return found


def items(page: Mapping[str, Any]) -> list[Any]:
    """What an answer of a list has, without what is no object. Raises ApiError for an answer of something else."""
    found = page.get("items")
    if found is not None and not isinstance(found, list):
        raise unreadable("something else than a list")
    return [one for one in found or () if isinstance(one, Mapping)]


def metadata(of: Any) -> Mapping[str, Any]:
    """The metadata of an object or a list; empty without any."""
    found = of.get("metadata") if isinstance(of, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def event(line: bytes) -> tuple[str, Resource] | None:
    """The type and the object of an event of a watch; ``None`` for a line that cannot be decoded.

    An event without an object is an ``ERROR`` without a reason.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    type_, object_ = (found.get("type"), found.get("object")) if isinstance(found, dict) else (None, None)
    if not (isinstance(type_, str) and isinstance(object_, dict)):
        return ERROR, {}
    return (type_, object_) if type_ == ERROR or metadata(object_) else (ERROR, {})


def failure(status: Resource) -> ApiError:
    """What a Status object says, as in an event ``ERROR``."""
    code = status.get("code")
    number = code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else _BAD_GATEWAY
    message = str(status.get("message") or "") or f"The API server ended a watch with HTTP {number}."
    return ApiError(number, str(status.get("reason") or ""), message)


def _flat(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(_without_deep(body))
    except (ValueError, RecursionError):
        found = None
    if not (isinstance(found, dict) and isinstance(found.get("items"), list)):
        raise unreadable("an object that is nested too deeply to be read")
    return found


def _without_deep(body: bytes) -> bytes:
    """A list with ``null`` in place of each object of more than ``_DEEPEST`` levels."""
    kept: list[bytes] = []
    at = begin = depth = deepest = 0
    for token in _TOKEN.finditer(body):
        if token[0] in (b"{", b"["):
            if depth == _OF_ITEMS:
                begin, deepest = token.start(), 0
            depth += 1
            deepest = max(deepest, depth - _OF_ITEMS)
        elif token[0] in (b"}", b"]"):
            depth -= 1
            if depth == _OF_ITEMS and deepest > _DEEPEST:
                kept += body[at:begin], b"null"
                at = token.end()
    return b"".join((*kept, body[at:]))
