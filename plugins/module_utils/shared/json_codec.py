"""JSON as bytes: by orjson where it is installed, else by the standard library, with equal results.

What orjson refuses goes to the standard library: lone surrogates, keys that are no strings, integers of more than 64
bits, and deep nesting, of which the standard library says so by RecursionError.
"""

from __future__ import annotations

import json
from typing import Any

try:
    import orjson
except ImportError:  # a laptop's ansible-playbook, or a platform without a wheel
    orjson = None  # type: ignore[assignment]


def encode(value: Any) -> bytes:
    """The shortest JSON of ``value``. Raises TypeError and ValueError as ``json.dumps`` does."""
    if orjson is not None:
        try:
            return orjson.dumps(value)
        except TypeError:
            pass
    return json.dumps(value, separators=(",", ":")).encode()


def decode(data: bytes) -> Any:
    """The value of a JSON text. Raises ValueError for anything else, and RecursionError for deep nesting."""
    if orjson is not None:
        try:
            return orjson.loads(data)
        except ValueError:
            pass
    return json.loads(data)
