"""Finds the sentences of a Markdown document. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_]*[A-Z0-9`])")
"""Between two sentences. A full stop before a small letter ends none, as in "e.g. a pod"."""
CLOSED = re.compile(r"[.!?:][\"')*_]*$")
"""How a line ends at whose end a sentence, or an introduction to what follows, ends."""
CODE = "`code`"


@dataclass(frozen=True)
class Line:
    """One line of a paragraph, or one cell of a table, as a reader sees it."""

    number: int
    """In the file, from 1."""
    text: str
    """Without addresses of links; each span of code is `CODE`."""
    is_cell: bool
    is_last: bool
    """Of its paragraph."""
    lacks_blank: bool
    """A reader sees it in the list item or the table above, for lack of a blank line before it."""

    def sentences(self) -> list[str]:
        return [one for one in END.split(self.text) if one]


def lines(document: str) -> Iterator[Line]:
    """Every line of prose. Headings, blocks of code and HTML are none."""
    tokens = MarkdownIt("commonmark").enable("table").parse(document)
    source = document.split("\n")
    opened = ""
    items = 0
    for token in tokens:
        items += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        if token.type in ("paragraph_open", "heading_open", "td_open", "th_open"):
            opened = token.type
        elif token.type == "inline" and opened in ("paragraph_open", "td_open"):
            yield from _of(token, source, is_cell=opened == "td_open", is_item=items > 0)


def _of(token: Token, source: list[str], *, is_cell: bool, is_item: bool) -> Iterator[Line]:
    texts = "".join(_visible(child) for child in token.children or []).split("\n")
    first = (token.map or [0])[0]
    for offset, text in enumerate(texts):
        written = source[first + offset]
        lacks_blank = "|" not in written if is_cell else is_item and offset > 0 and not written.startswith(" ")
        yield Line(first + offset + 1, text.strip(), is_cell, offset == len(texts) - 1, bool(text) and lacks_blank)


def _visible(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    if token.type == "code_inline":
        return CODE
    return token.content if token.type == "text" else ""
