"""Reads a list of the API server page by page, so that the memory for a response does not grow with the list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Page = dict[str, Any]


def pages(read: Callable[[Mapping[str, Any]], Page], query: Mapping[str, Any], size: int) -> Iterator[Page]:
    """Yield the responses of a list: ``read`` sends one request with the query that it gets, at most ``size`` objects.

    Raises what ``read`` raises.
    """
    asked = {**query, "limit": size}
    while True:
        page = read(asked)
        yield page
        token = (page.get("metadata") or {}).get("continue")
        if not token:
            return
        asked = {**asked, "continue": token}
