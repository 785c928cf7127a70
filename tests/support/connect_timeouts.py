"""How long a client of the API server may wait for each step of opening a connection."""

from __future__ import annotations

from typing import Any

import pytest
import urllib3


def record_connect_timeouts(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a list that gets these seconds of each request from now on; the requests are sent all the same."""
    limits: list[float] = []
    request = urllib3.HTTPConnectionPool.request

    def record(*given: Any, timeout: urllib3.Timeout, **options: Any) -> Any:
        limits.append(timeout.connect_timeout)
        return request(*given, timeout=timeout, **options)

    monkeypatch.setattr(urllib3.HTTPConnectionPool, "request", record)
    return limits
