"""Lists that the API server returns in pages."""

from __future__ import annotations

import weakref
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
        return dict(self.answers.pop(0))


@pytest.mark.parametrize("last", [{"items": [3], "metadata": {"continue": ""}}, {"metadata": None}, {}])
def test_each_page_continues_the_one_before(last: dict[str, Any]) -> None:
    server = Server(FIRST, SECOND, last)
    assert [dict(page) for page in pages(server.read, {"labelSelector": "x"}, 7)] == [FIRST, SECOND, last]
    asked = {"labelSelector": "x", "limit": 7}
    assert server.queries == [asked, {**asked, "continue": "a"}, {**asked, "continue": "b"}]


def test_no_page_is_read_before_it_is_needed() -> None:
    server = Server(FIRST, SECOND)
    assert next(pages(server.read, {}, 7)) == FIRST
    assert len(server.queries) == 1


class Thing:
    """An object of a page, of which a test can see whether it is still in memory."""


def test_a_page_is_no_longer_in_memory_when_the_next_one_is_read() -> None:
    last_page: list[weakref.ref[Thing]] = []
    alive: list[Thing | None] = []

    def read(query: Mapping[str, Any]) -> dict[str, Any]:
        alive.extend(one() for one in last_page)
        thing = Thing()
        last_page[:] = [weakref.ref(thing)]
        return {"items": [thing], "metadata": {"continue": "more" if len(alive) < 2 else ""}}

    assert [len(page["items"]) for page in pages(read, {}, 1)] == [1, 1, 1]
    assert alive == [None, None]
