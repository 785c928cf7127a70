"""Polls what no event and no watch reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_Found = TypeVar("_Found")

TIMEOUT = 120.0
"""Seconds, which stop a hanging test and are no measure of speed."""


def until(what: Callable[[], _Found], why: str = "", timeout: float = TIMEOUT, pause: float = 0.01) -> _Found:
    """The first true value of ``what()``. Raises AssertionError after ``timeout`` seconds, with ``why``."""
    deadline = time.monotonic() + timeout
    while not (found := what()):
        assert time.monotonic() < deadline, f"not within {timeout:g} s{why and f': {why}'}"
        time.sleep(pause)
    return found
