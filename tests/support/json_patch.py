"""JSON patch (RFC 6902) and merge patch (RFC 7396), as far as tests need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class NotApplicable(Exception):
    """A path does not exist, or a ``test`` fails."""


def apply(document: Any, patch: Iterable[Mapping[str, Any]]) -> Any:
    """A changed copy of ``document``, which shares what did not change. Raises :class:`NotApplicable`."""
    for step in patch:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
        document = _applied(document, parts, step)
    return document


def merge(document: Any, patch: Any) -> Any:
    """A changed copy of ``document``; ``None`` in the patch removes a field."""
    if not isinstance(patch, Mapping):
        return patch
    changed = dict(document) if isinstance(document, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = merge(changed.get(name), value)
    return changed


def _applied(holder: Any, parts: list[str], step: Mapping[str, Any]) -> Any:
    """A copy of ``holder`` with the value at ``parts`` changed."""
    part, *below = parts
    if not isinstance(holder, (dict, list)):
        raise NotApplicable(part)
    changed: Any = holder.copy()
    where: Any = part if isinstance(holder, dict) else len(holder) if part == "-" else int(part)
    if below or step["op"] != "add":
        try:
            present = holder[where]
        except (KeyError, IndexError) as e:
            raise NotApplicable(part) from e
    if below:
        changed[where] = _applied(present, below, step)
    elif step["op"] == "test":
        if present != step["value"]:
            raise NotApplicable(f"testing value {part} failed")
    elif step["op"] == "remove":
        del changed[where]
    elif step["op"] == "add" and isinstance(changed, list):
        changed.insert(where, step["value"])
    else:
        changed[where] = step["value"]
    return changed
