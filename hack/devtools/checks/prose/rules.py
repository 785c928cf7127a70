"""The rules of prose on one document. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from devtools.checks.prose.sentences import CLOSED, CODE, Line, lines

WORD = re.compile(r"[A-Za-z0-9]")


@dataclass(frozen=True)
class Rules:
    """What `rules.toml` says, without the files."""

    words_of_a_sentence: int
    instead: Mapping[str, str]
    """A regular expression of words to avoid, and what to write instead."""
    diary: Mapping[str, str]
    """The same for what tells how something came about."""


def problems(document: str, rules: Rules) -> list[tuple[int, str]]:
    """The line, from 1, and a message for each violation, in the order of the document."""
    return [(line.number, found) for line in lines(document) for found in _of(line, rules)]


def _of(line: Line, rules: Rules) -> Iterator[str]:
    sentences = line.sentences()
    if line.lacks_blank:
        yield f"no blank line before it, so it belongs to what is above: {line.text[:40]}"
    for sentence in sentences:
        count = words(sentence)
        if count > rules.words_of_a_sentence:
            yield f"{count} words in a sentence, at most {rules.words_of_a_sentence}: {sentence[:60]}..."
    if not line.is_cell:
        if len(sentences) > 1:
            yield f"one sentence a line: start a line with '{sentences[1][:40]}'"
        if not line.is_last and line.text and not CLOSED.search(line.text):
            yield f"one sentence a line: this one goes on in the next: ...{line.text[-40:]}"
    for avoided in (rules.instead, rules.diary):
        for pattern, better in avoided.items():
            if match := re.search(rf"\b(?:{pattern})\b", line.text, re.IGNORECASE):
                yield f"'{match.group()}': {better}"


def words(sentence: str) -> int:
    """Code is no word: who reads takes a name at a glance."""
    return sum(bool(WORD.search(word)) for word in sentence.replace(CODE, "").split())
