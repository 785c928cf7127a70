"""Lists that the API server returns in pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.dljob.operator.plugins.module_utils.shared.paging import pages

FIRST = {"items": [1], "metadata": {"continue": "a"}}
SECOND = {"items": [2], "metadata": {"continue": "b"}}


class Server:
    """Returns ``answers`` one after the other, and keeps the queries."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers = list(answers)
        self.queries: list[Mapping[str, Any]] = []

    def read(self, query: Mapping[str, Any]) -> dict[str, Any]:
        self.queries.append(query)
        return self.answers.pop(0)


@pytest.mark.parametrize("last", [{"items": [3], "metadata": {"continue": ""}}, {"metadata": None}, {}])
def test_each_page_continues_the_one_before(last: dict[str, Any]) -> None:
    server = Server(FIRST, SECOND, last)
    assert list(pages(server.read, {"labelSelector": "x"}, 7)) == [FIRST, SECOND, last]
    asked = {"labelSelector": "x", "limit": 7}
    assert server.queries == [asked, {**asked, "continue": "a"}, {**asked, "continue": "b"}]


def test_no_page_is_read_before_it_is_needed() -> None:
    server = Server(FIRST, SECOND)
    assert next(pages(server.read, {}, 7)) == FIRST
    assert len(server.queries) == 1
