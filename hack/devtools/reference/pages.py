"""What the pages have in common: tables, Ansible's markup in Markdown's terms, the index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
NOTE = "<!-- Written by `make docs`: change what it is written from instead. -->\n"

_QUOTED = re.compile(r"\b(?:C|V|O|RV|E|M|P)\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_STRONG = re.compile(r"\bB\(([^()]*)\)")
_EMPHASIZED = re.compile(r"\bI\(([^()]*)\)")


def markdown(text: str) -> str:
    """Ansible's markup as Markdown: ``C(x)``, ``O(x)``, ``V(x)`` and their like become code."""
    text = _QUOTED.sub(lambda m: f"`{m[1].replace('#module', '')}`", text)
    return _EMPHASIZED.sub(r"*\1*", _STRONG.sub(r"**\1**", text))


def paragraphs(description: Any) -> list[str]:
    """A description, which is a text or a list of texts."""
    listed = [description] if isinstance(description, str) else list(description or ())
    return [markdown(" ".join(str(text).split())) for text in listed]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def code(value: Any) -> str:
    """A value as code."""
    return f"`{value}`"


def index(made: Mapping[str, str]) -> str:
    """The list of all pages, by their titles."""
    groups: dict[str, list[str]] = {}
    for name, text in sorted(made.items()):
        title = next(line[2:] for line in text.splitlines() if line.startswith("# "))
        groups.setdefault(name.partition("/")[0], []).append(f"- [{title}]({name})")
    headings = {
        "definitions": "Every field of every kind of job",
        "plugins": "Plugins",
        "roles": "Roles",
    }
    parts = [f"## {headings[group]}\n\n" + "\n".join(lines) + "\n" for group, lines in groups.items()]
    return NOTE + "# Reference\n\n" + "\n".join(parts)
