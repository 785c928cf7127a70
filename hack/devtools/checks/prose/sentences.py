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

    def sentences(self) -> list[str]:
        return [one for one in END.split(self.text) if one]


def lines(document: str) -> Iterator[Line]:
    """Every line of prose. Headings, blocks of code and HTML are none."""
    tokens = MarkdownIt("commonmark").enable("table").parse(document)
    opened = ""
    for token in tokens:
        if token.type in ("paragraph_open", "heading_open", "td_open", "th_open"):
            opened = token.type
        elif token.type == "inline" and opened in ("paragraph_open", "td_open"):
            yield from _of(token, is_cell=opened == "td_open")


def _of(token: Token, *, is_cell: bool) -> Iterator[Line]:
    texts = "".join(_visible(child) for child in token.children or []).split("\n")
    first = (token.map or [0])[0] + 1
    for offset, text in enumerate(texts):
        yield Line(first + offset, text.strip(), is_cell, offset == len(texts) - 1)


def _visible(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    if token.type == "code_inline":
        return CODE
    return token.content if token.type == "text" else ""
