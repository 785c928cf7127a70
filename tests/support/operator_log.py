"""Waits for a line in the log of an operator that another process started."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def unescaped(log: str) -> str:
    """Return the log with the quotes in its quoted values as the API server wrote them."""
    return log.replace('\\"', '"')


@contextmanager
def logs(log: Path, text: str, timeout: float = 120.0) -> Iterator[None]:
    """Run the body, then wait until a line with ``text`` has been added to ``log`` since. Raises AssertionError."""
    before = log.stat().st_size
    yield
    deadline = time.monotonic() + timeout
    while text not in (added := log.read_bytes()[before:].decode(errors="replace")):
        assert time.monotonic() < deadline, f"the operator did not log {text!r} in {timeout:.0f} s:\n{added[-4000:]}"
        time.sleep(0.1)  # a file has to be polled
