"""Convert names to snake case exactly as ansible-operator does, so that both engines pass the same variables."""

from __future__ import annotations

import re
from typing import Any

_DIGITS_INSIDE = re.compile(r"([a-zA-Z])(\d+)([a-zA-Z]\d+)")
_ACRONYMS = ("HTTP", "URL", "IP")


def keys_to_snake(value: Any) -> Any:
    """Return `value` with the keys of all nested mappings in snake case."""
    if isinstance(value, dict):
        return {snake_case(key): keys_to_snake(item) for key, item in value.items()}
    if isinstance(value, list):
        return [keys_to_snake(item) for item in value]
    return value


def snake_case(name: str) -> str:
    """Return `name` in snake case: `cleanPodPolicy` is `clean_pod_policy`, `serverURLs` is `server_urls`.

    A leading capital gives a leading underscore (`PsRootPort` is `_ps_root_port`), unless the name starts
    with one of the acronyms HTTP, URL and IP.
    """
    text = _DIGITS_INSIDE.sub(r"\1 \2 \3", name).strip(" ")
    capital = _is_upper(text[:1])
    for acronym in _ACRONYMS:
        text = _isolate(text, acronym)
    words = [word.lower() for word in _split(text)]
    prefix = "_" if capital and words[0].upper() not in _ACRONYMS else ""
    return prefix + "_".join(words)


def _split(text: str) -> list[str]:
    """Split `text` at separators and at changes of case, but not after a single first letter."""
    words, word = [], ""
    for char, following in zip(text, text[1:] + " ", strict=True):
        if word and _is_upper(char) and _is_lower(following):
            words.append(word)
            word = char
        elif word and _is_lower(char) and _is_upper(following):
            words.append(word + char)
            word = ""
        elif char in " _-":
            words.append(word)
            word = ""
        else:
            word += char
    return [*words, word]


def _isolate(text: str, acronym: str) -> str:
    """Put underscores around the first `acronym` in `text`; the small "s" of its plural belongs to it."""
    start = text.find(acronym)
    if start < 0:
        return text
    end = start + len(acronym)
    before, after = text[:start], text[end:]
    if not after:
        return f"{before}_{acronym}"
    if after == "s":
        return f"{before}_{acronym}S"
    plural = after.startswith("s")
    middle = acronym + "S" if plural else acronym
    lead = f"{before}_" if start else ""
    return f"{lead}{middle}_{after[1:] if plural else after}"


def _is_upper(char: str) -> bool:
    return "A" <= char <= "Z"


def _is_lower(char: str) -> bool:
    return "a" <= char <= "z"
