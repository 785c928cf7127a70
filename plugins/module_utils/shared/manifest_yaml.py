"""Reads the YAML of manifests as kubectl does: with the types of JSON, by the rules of Go's yaml library (v2).

PyYAML, and so Ansible for ``-e @file``, reads a plain ``2024-01-15`` as a date and ``12:30`` as the number 750. To
kubectl both are strings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

_STR, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_PLAIN = "tag:dljob.operator,2026:plain"
"""The tag of a scalar without quotes and without a tag of its own."""

_WORDS: dict[str, bool | float | None] = {
    **{word: True for one in ("y", "yes", "true", "on") for word in (one, one.capitalize(), one.upper())},
    **{word: False for one in ("n", "no", "false", "off") for word in (one, one.capitalize(), one.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **{f"{sign}.{word}": math.inf for sign in ("", "+") for word in ("inf", "Inf", "INF")},
    **{f"-.{word}": -math.inf for word in ("inf", "Inf", "INF")},
    **{f".{word}": math.nan for word in ("nan", "NaN", "NAN")},
}
_INT = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>0|[1-9][0-9]*))"
)
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEAST, _MOST = -(2**63), 2**64 - 1
_NEEDED = "it needs apiVersion, kind and metadata"


def read(text: str) -> list[Any]:
    """The documents of ``text``. Raises yaml.YAMLError."""
    return list(yaml.load_all(text, Loader=_Loader))


def read_objects(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each object with the number of its document, from 1; those of a ``List`` one by one.

    Raises yaml.YAMLError, and ValueError for a document or an item that is no object. An empty one is skipped.
    """
    for number, document in enumerate(read(text), 1):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise ValueError(f"document {number} is no object: {_NEEDED}")
        items = document.get("items")
        if document.get("kind") == "List" and isinstance(items, list):
            for position, item in enumerate(items, 1):
                if not isinstance(item, dict | None):
                    raise ValueError(f"document {number}: item {position} of the List is no object: {_NEEDED}")
                if item is not None:
                    yield number, item
        else:
            yield number, document


def scalar(text: str) -> str | bool | int | float | None:
    """The value of a plain scalar. A number without a fraction is an integer, as in the JSON that kubectl sends."""
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("."):
        return _number(text) if _FLOAT.fullmatch(text) else text
    if not text.startswith(tuple("+-0123456789")):
        return text
    digits = text.replace("_", "")
    if found := _INT.fullmatch(digits):
        base = next(name for name in _BASES if found[name])
        value = int(found["sign"] + found[base], _BASES[base])
        if _LEAST <= value <= _MOST:
            return value
    return _number(digits, text) if _FLOAT.fullmatch(digits) else text


def _number(digits: str, text: str = "") -> str | int | float:
    """The number, or the text of one that is too large."""
    value = float(digits)
    if math.isinf(value):
        return text or digits
    return int(value) if value.is_integer() else value


class _Loader(yaml.SafeLoader):
    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _MERGE if value == "<<" else _PLAIN
        return str(super().resolve(kind, value, implicit))

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Keys become strings, as in JSON."""
        found = super().construct_mapping(node, deep)
        if None in found:
            raise yaml.constructor.ConstructorError(None, None, "found a key that is null", node.start_mark)
        return {_key(key): value for key, value in found.items()}


def _key(key: Any) -> Any:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key) if isinstance(key, int | float) else key


def _plain(loader: _Loader, node: yaml.ScalarNode) -> Any:
    value = scalar(node.value)
    if isinstance(value, float) and not math.isfinite(value):
        message = f"{node.value} is no number that JSON has; quote it if it is a string"
        raise yaml.constructor.ConstructorError(None, None, message, node.start_mark)
    return value


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    return str(node.value)


def _binary(loader: _Loader, node: yaml.ScalarNode) -> str:
    return loader.construct_yaml_binary(node).decode("utf-8", "replace")


_Loader.add_constructor(_PLAIN, _plain)
_Loader.add_constructor(_MERGE, _text)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _text)
_Loader.add_constructor("tag:yaml.org,2002:binary", _binary)
