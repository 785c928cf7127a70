"""JSON by msgspec where it is installed, else by the standard library: the same results and refusals."""

from __future__ import annotations

import json
from typing import Any, NoReturn

try:
    import msgspec
except ImportError:  # an optional library, compiled for the platforms of requirements.txt
    msgspec = None  # type: ignore[assignment]


def loads(text: bytes | str) -> Any:
    """Decode a document.

    What msgspec refuses, such as half of a surrogate pair, the standard library decodes or refuses. Raises ValueError,
    also for NaN and infinity, and RecursionError like ``json.loads``.
    """
    if msgspec is not None:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            pass
    return json.loads(text, parse_constant=_refuse)


def dumps(value: Any) -> bytes:
    """Encode what ``loads`` has returned, as UTF-8 without a line break. Raises TypeError and ValueError.

    The standard library encodes what msgspec refuses: half of a surrogate pair, subclasses of strings and numbers.
    """
    if msgspec is not None:
        try:
            return bytes(msgspec.json.encode(value))
        except (UnicodeEncodeError, TypeError):
            pass
    return json.dumps(value, separators=(",", ":")).encode()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
