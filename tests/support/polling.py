"""Polls what no event and no watch reports."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(holds: Callable[[], object], timeout: float = 20.0, pause: float = 0.01, why: str = "") -> None:
    """Return as soon as ``holds()`` is true. Raises AssertionError after ``timeout`` seconds, with ``why``."""
    deadline = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout:g} s{why and f': {why}'}"
        time.sleep(pause)
