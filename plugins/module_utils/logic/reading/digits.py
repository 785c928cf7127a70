"""Reads a number from a label or an annotation of a pod, where every user with the right to edit pods can write."""

from __future__ import annotations

_MAX_DIGITS = 9
"""The status has an int64."""


def number(text: str | None) -> int | None:
    """The number of decimal digits that ``text`` is; ``None`` for other text and for more than nine digits."""
    return int(text) if text and text.isdecimal() and len(text) <= _MAX_DIGITS else None
