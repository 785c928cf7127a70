"""Reads a list of the API server page by page, so that the memory for a response does not grow with the list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Page = dict[str, Any]


def pages(read: Callable[[Mapping[str, Any]], Page], query: Mapping[str, Any], size: int) -> Iterator[Page]:
    """Yield the responses of a list: ``read`` sends one request with the query that it gets, at most ``size`` objects.

    Each page is emptied before the next one is read, so that one of them is in memory at a time: keep what is in a
    page, not the page. Raises what ``read`` raises.
    """
    asked = {**query, "limit": size}
    while True:
        page = read(asked)
        token = (page.get("metadata") or {}).get("continue")
        yield page
        page.clear()
        if not token:
            return
        asked = {**asked, "continue": token}
